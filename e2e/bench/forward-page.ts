/** Page of the forward benchmark: matrix products, and passes of the sample model. */
import type { Backend } from '../../src/backend/backend';
import { createCpuBackend } from '../../src/backend/cpu/cpu-backend';
import { createGpuBackend } from '../../src/backend/gpu/gpu-backend';
import { type MatmulForm, matmul, matmulForm } from '../../src/backend/kernels/matmul';
import { GREEDY, generate, WRITING_RESIDENT_BYTES } from '../../src/evaluate/generation';
import { DEFAULT_PROTOCOL, evaluate } from '../../src/evaluate/perplexity';
import { createTokenizer } from '../../src/foreign/tokenizer';
import type { WeightDtype } from '../../src/formats/dtype';
import { parseModelConfig } from '../../src/formats/model-config';
import { headerLength, parseSafetensorsHeader } from '../../src/formats/safetensors-header';
import { openRunner } from '../../src/forward/runner';
import type { WeightSource } from '../../src/forward/weight-source';
import { resolveArchitecture } from '../../src/models/resolution';

export interface Measured {
  what: string;
  value: number;
  unit: string;
}

/** Runs everything on one engine. */
export async function measure(kind: 'webgpu' | 'cpu', report: (line: string) => void): Promise<Measured[]> {
  const engine = kind === 'webgpu' ? await createGpuBackend() : createCpuBackend();
  report(`${kind}: ${engine.adapter}${engine.software ? ', on the processor' : ''}`);
  const results: Measured[] = [];
  const add = (what: string, value: number, unit: string) => {
    results.push({ what, value, unit });
    report(`  ${what}: ${value.toPrecision(3)} ${unit}`);
  };
  const size = engine.software ? 512 : 4096;
  for (const rows of [1, 256]) {
    const own = matmulForm(engine, rows);
    const forms: MatmulForm[] = kind === 'cpu' ? [own] : rows === 1 ? ['line', 'vector'] : ['block', 'tile'];
    for (const form of forms) {
      for (const dtype of ['F32', 'F16', 'BF16'] as const) {
        const speed = await matmulSpeed(engine, form, dtype, rows, size);
        add(
          `${rows} rows, ${size} × ${size}, ${dtype}, ${form}${form === own ? ' (chosen)' : ''}`,
          speed,
          'GFLOP/s',
        );
      }
    }
  }
  await measureSample(engine, add);
  engine.close();
  return results;
}

/** GFLOP/s of x [rows, size] times a [size, size] weight; the best of three. */
async function matmulSpeed(
  engine: Backend,
  form: MatmulForm,
  dtype: WeightDtype,
  rows: number,
  size: number,
): Promise<number> {
  const bytes = size * size * (dtype === 'F32' ? 4 : 2);
  const [weights, x, bias, y] = [bytes, rows * size * 4, 16, rows * size * 4].map((n, i) =>
    engine.allocate(n, `operand ${i}`),
  ) as [ReturnType<Backend['allocate']>, ...ReturnType<Backend['allocate']>[]];
  const repeats = engine.software ? Math.max(1, Math.round(64 / rows)) : 50;
  const run = async () => {
    const begin = performance.now();
    for (let i = 0; i < repeats; i++) {
      engine.run(matmul[form][dtype], {
        params: {
          rows,
          outputs: size,
          inputs4: size / 4,
          w_first: 0,
          x_stride4: size / 4,
          y_stride: size,
          y_begin: 0,
          add: 0,
          biased: 0,
          scale: 1,
        },
        buffers: { weights, x: x!, bias: bias!, y: y! },
      });
    }
    await engine.read([]);
    return (2 * rows * size * size * repeats) / (performance.now() - begin) / 1e6;
  };
  await run();
  const best = Math.max(await run(), await run(), await run());
  for (const buffer of [weights, x!, bias!, y!]) engine.free(buffer);
  return best;
}

async function measureSample(
  engine: Backend,
  add: (what: string, value: number, unit: string) => void,
): Promise<void> {
  const file = async (path: string) => new Uint8Array(await (await fetch(`/samples/${path}`)).arrayBuffer());
  const text = async (path: string) => new TextDecoder().decode(await file(path));
  const config = parseModelConfig(await text('base/config.json'), 'config.json');
  const bytes = await file('base/model.safetensors');
  const header = 8 + headerLength(bytes.subarray(0, 8), bytes.length);
  const { tensors } = parseSafetensorsHeader(bytes.subarray(8, header), bytes.length, 'model.safetensors');
  const architecture = resolveArchitecture(config);
  const source: WeightSource = {
    tensors: new Map(
      [...tensors].map(([name, t]) => [name, { dtype: t.dtype as WeightDtype, shape: t.shape }]),
    ),
    read: async (name, begin, end) => {
      const at = tensors.get(name)!.begin;
      return bytes.slice(at + begin, at + end);
    },
  };
  const runner = openRunner(engine, architecture, source);
  const tokenizer = createTokenizer(
    { tokenizer: await text('base/tokenizer.json'), hasSentencePiece: false },
    'samples/base',
  );
  const ids = [...tokenizer.prefix, ...tokenizer.encode(await text('texts/kitchen.eval.txt'))].slice(0, 2048);
  let rate = 0;
  const report = await evaluate(runner, { ids, bos: 0 }, DEFAULT_PROTOCOL, {
    onProgress: (p) => {
      rate = p.tokensPerSecond;
    },
  });
  add('perplexity of the sample base, tokens run', rate, 'tokens/s');
  add('  scored', report.tokens / report.seconds, 'tokens/s');
  add('  most held on the device', report.peakBytes / 2 ** 20, 'MiB');
  runner.close();
  const writer = openRunner(engine, architecture, source, { residentBytes: WRITING_RESIDENT_BYTES });
  for (const batch of [1, 8]) {
    const prompts = Array.from({ length: batch }, () => ids.slice(0, 16));
    const begin = performance.now();
    const made = await generate(writer, prompts, { maxTokens: 48, sampling: GREEDY });
    const count = made.reduce((sum, g) => sum + g.ids.length, 0);
    add(
      `generation with the sample base, ${batch} at once`,
      (count * 1000) / (performance.now() - begin),
      'tokens/s',
    );
  }
  writer.close();
}
