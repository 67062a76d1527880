/**
 * A graphics device whose kernels count the bytes they ask their buffers for: every access in the WGSL is made to go through
 * a function that adds its size, so that what is counted is what runs.
 */
import type { Backend, BackendBuffer, BufferRange, Dispatch } from './backend';
import { wgslOf } from './gpu/wgsl';
import type { Kernel } from './kernel';

export interface Traffic {
  reads: number;
  writes: number;
}

export interface TalliedBackend extends Backend {
  /** Bytes since the last call, by kernel; `copy` is what was read back, `clear` what was filled with zeros. */
  takeTraffic(): Promise<Map<string, Traffic>>;
}

const SIZES: Readonly<Record<string, number>> = {
  u32: 4,
  f32: 4,
  'atomic<u32>': 4,
  vec2u: 8,
  vec4u: 16,
  vec4f: 16,
};

const TALLY = `
fn tally_reads(index: u32, bytes: u32) -> u32 { atomicAdd(&tally[0], bytes); return index; }
fn tally_writes(index: u32, bytes: u32) -> u32 { atomicAdd(&tally[1], bytes); return index; }
`;

/** The kernel with a last buffer `tally`: bytes read, bytes written. */
function tallied(kernel: Kernel): Kernel {
  const head = wgslOf({ ...kernel, libraries: [], wgsl: '' });
  const wgsl = wgslOf(kernel).slice(head.length);
  const sizes = new Map(
    Object.entries(kernel.buffers).map(([name, type]) => {
      const size = SIZES[type.replace('rw ', '')];
      if (size === undefined) throw new Error(`${kernel.id}: elements of ${name} are ${type}`);
      return [name, size];
    }),
  );
  return {
    ...kernel,
    id: `${kernel.id}, tallied`,
    wgsl: withTallies(wgsl.replace(/\/\/.*/g, ''), sizes) + TALLY,
    libraries: [],
    buffers: { ...kernel.buffers, tally: 'rw atomic<u32>' },
  };
}

function withTallies(wgsl: string, sizes: ReadonlyMap<string, number>): string {
  const access = new RegExp(`(atomic\\w+\\(&)?\\b(${[...sizes.keys()].join('|')})\\[`, 'g');
  let out = '';
  let at = 0;
  for (let found = access.exec(wgsl); found; found = access.exec(wgsl)) {
    const begin = access.lastIndex;
    let end = begin;
    for (let depth = 1; depth > 0; end++) depth += { '[': 1, ']': -1 }[wgsl[end]!] ?? 0;
    const [all, atomic, name] = found;
    const index = withTallies(wgsl.slice(begin, end - 1), sizes);
    const kinds = atomic
      ? { 'atomicAdd(&': ['reads', 'writes'], 'atomicLoad(&': ['reads'], 'atomicStore(&': ['writes'] }[
          atomic
        ]!
      : [/^\s*=[^=]/.test(wgsl.slice(end)) ? 'writes' : 'reads'];
    const counted = kinds.reduce((inner, kind) => `tally_${kind}(${inner}, ${sizes.get(name!)}u)`, index);
    out += `${wgsl.slice(at, found.index)}${all}${counted}]`;
    at = end;
    access.lastIndex = end;
  }
  return out + wgsl.slice(at);
}

export function talliedBackend(engine: Backend): TalliedBackend {
  const kernels = new Map<string, { kernel: Kernel; tally: BackendBuffer }>();
  const moved = { copy: { reads: 0, writes: 0 }, clear: { reads: 0, writes: 0 } };
  const read = async (ranges: readonly BufferRange[]) => {
    const bytes = ranges.reduce((sum, { byteLength }) => sum + byteLength, 0);
    moved.copy.reads += bytes;
    moved.copy.writes += bytes;
    return engine.read(ranges);
  };
  return {
    kind: engine.kind,
    adapter: engine.adapter,
    software: engine.software,
    maxBufferBytes: engine.maxBufferBytes,
    seconds: engine.seconds,
    allocate: (byteLength, label) => engine.allocate(byteLength, label),
    free: (buffer) => engine.free(buffer),
    write: (buffer, byteOffset, data) => engine.write(buffer, byteOffset, data),
    clear(buffer, byteOffset = 0, byteLength = buffer.byteLength - byteOffset) {
      moved.clear.writes += byteLength;
      engine.clear(buffer, byteOffset, byteLength);
    },
    run<P extends string, B extends string>(kernel: Kernel<P, B>, dispatch: Dispatch<P, B>) {
      const own = kernels.get(kernel.id) ?? {
        kernel: tallied(kernel as unknown as Kernel),
        tally: engine.allocate(8, 'tally'),
      };
      kernels.set(kernel.id, own);
      engine.run(own.kernel, { ...dispatch, buffers: { ...dispatch.buffers, tally: own.tally } });
    },
    read,
    close: () => engine.close(),
    async takeTraffic() {
      const found = [...kernels];
      const bytes = await engine.read(found.map(([, { tally }]) => ({ buffer: tally, byteLength: 8 })));
      const traffic = new Map<string, Traffic>(
        found.map(([id, { tally }], i) => {
          engine.clear(tally);
          const [reads, writes] = new Uint32Array(bytes[i]!.buffer);
          return [id, { reads: reads!, writes: writes! }];
        }),
      );
      for (const [name, { reads, writes }] of Object.entries(moved)) {
        traffic.set(name, { reads, writes });
        Object.assign(moved, { [name]: { reads: 0, writes: 0 } });
      }
      return traffic;
    },
  };
}
