import activation from '../../../shaders/lib/activation.wgsl?raw';
import attention from '../../../shaders/lib/attention.wgsl?raw';
import drawLikely from '../../../shaders/lib/draw-likely.wgsl?raw';
import exact4 from '../../../shaders/lib/exact4.wgsl?raw';
import factorOther from '../../../shaders/lib/factor-other.wgsl?raw';
import factorOwn from '../../../shaders/lib/factor-own.wgsl?raw';
import fewRows from '../../../shaders/lib/few-rows.wgsl?raw';
import half from '../../../shaders/lib/half.wgsl?raw';
import inputGram from '../../../shaders/lib/input-gram.wgsl?raw';
import maskedRows from '../../../shaders/lib/masked-rows.wgsl?raw';
import matmul from '../../../shaders/lib/matmul.wgsl?raw';
import norm from '../../../shaders/lib/norm.wgsl?raw';
import pack from '../../../shaders/lib/pack.wgsl?raw';
import philox from '../../../shaders/lib/philox.wgsl?raw';
import rotate from '../../../shaders/lib/rotate.wgsl?raw';
import rowGroup from '../../../shaders/lib/row-group.wgsl?raw';
import rowLine from '../../../shaders/lib/row-line.wgsl?raw';
import special from '../../../shaders/lib/special.wgsl?raw';
import stamp from '../../../shaders/lib/stamp.wgsl?raw';
import stored from '../../../shaders/lib/stored.wgsl?raw';
import triangular from '../../../shaders/lib/triangular.wgsl?raw';
import vectorSums from '../../../shaders/lib/vector-sums.wgsl?raw';
import vectorSumsSubgroups from '../../../shaders/lib/vector-sums-subgroups.wgsl?raw';
import weightBf16 from '../../../shaders/lib/weight-bf16.wgsl?raw';
import weightF16 from '../../../shaders/lib/weight-f16.wgsl?raw';
import weightF32 from '../../../shaders/lib/weight-f32.wgsl?raw';
import weightQ8 from '../../../shaders/lib/weight-q8.wgsl?raw';

const LIBRARIES = {
  activation,
  attention,
  drawLikely,
  exact4,
  fewRows,
  half,
  matmul,
  pack,
  philox,
  special,
  stored,
  weightF32,
  weightF16,
  weightBf16,
  weightQ8,
  norm,
  inputGram,
  triangular,
  factorOwn,
  factorOther,
  maskedRows,
  rotate,
  rowGroup,
  rowLine,
  vectorSums,
};

/** In their place where the device has subgroups. */
const WITH_SUBGROUPS: Partial<Record<Library, string>> = { vectorSums: vectorSumsSubgroups };

export type Library = keyof typeof LIBRARIES;

interface WgslParts {
  params: Readonly<Record<string, string>>;
  buffers: Readonly<Record<string, string>>;
  libraries: readonly Library[];
  /** The kernel's own file. */
  wgsl: string;
}

/** A kernel's complete source: its bindings as declared, the stamp library, the libraries it names and its own file. */
export function wgslOf({ params, buffers, libraries, wgsl }: WgslParts, hasSubgroups = false): string {
  const others = hasSubgroups ? WITH_SUBGROUPS : {};
  return [
    ...(libraries.some((name) => others[name]) ? ['enable subgroups;'] : []),
    uniform(params),
    ...Object.entries(buffers).map(storage),
    stamp,
    ...libraries.map((name) => others[name] ?? LIBRARIES[name]),
    wgsl,
  ].join('\n');
}

function uniform(params: Readonly<Record<string, string>>): string {
  const fields = Object.entries({ stamp: 'vec4<u32>', ...params }).map(
    ([name, type]) => `  ${name}: ${type},\n`,
  );
  return `struct Params {\n${fields.join('')}}\n\n@group(0) @binding(0) var<uniform> params: Params;\n`;
}

function storage([name, type]: [string, string], at: number): string {
  const [element, access] = type.startsWith('rw ') ? [type.slice(3), 'read_write'] : [type, 'read'];
  return `@group(0) @binding(${at + 1}) var<storage, ${access}> ${name}: array<${element}>;`;
}
