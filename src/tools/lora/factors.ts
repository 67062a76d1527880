/** The factors of one LoRA in memory, and what its modules are made of: singular values of B·A, from the factors alone. */
import { factoredSvd } from '../../adapters/combine';
import { AmalgamError } from '../../errors';
import type { Adapter, AdapterUpdate } from '../../inputs/adapter';
import { type ReadTensor, readF32, transpose } from '../../inputs/stored-tensor';
import type { Svd } from '../../linalg/small-svd';
import { checkMergeable } from '../../merge/plan/adapter-contributors';
import type { MeasuredModule } from '../../reports/lora';

/** One module: ΔW = scale · B · A. */
export interface LoraPart {
  module: string;
  kind: 'linear' | 'embedding';
  /** [rank, inputs] */
  a: Float32Array;
  /** [outputs, rank] */
  b: Float32Array;
  rank: number;
  scale: number;
  inputs: number;
  outputs: number;
  /** Of a convolution: A is stored as [rank, channels, ...kernel]. */
  kernel: readonly number[];
}

/** What it carries whole goes along. @throws AmalgamError `AdapterUnsupported` for what is not made of plain factors */
export function requireFactors(adapter: Adapter): void {
  // mlx_lm has the same factors, the other way round
  const { type } = adapter.config;
  const config = { ...adapter.config, type: type === 'MLX' ? 'LORA' : type };
  checkMergeable({ ...adapter, config, replaces: new Map() }, (message) => {
    throw new AmalgamError(
      'AdapterUnsupported',
      message.replace('cannot be part of a merged adapter', 'is not made of plain factors'),
      'Merge it into its base (Convert), and extract a LoRA from the two.',
    );
  });
}

export async function readPart(
  adapter: Adapter,
  [module, update]: readonly [string, AdapterUpdate],
  read: ReadTensor,
): Promise<LoraPart> {
  const { rank, scale, kind } = update;
  const [a, b] = [await readF32(update.a, read), await readF32(update.b, read)];
  const sides = { inputs: a.length / rank, outputs: b.length / rank, kernel: update.a.shape.slice(2) };
  if (adapter.config.type !== 'MLX') return { module, kind, a, b, rank, scale, ...sides };
  return {
    ...{ module, kind: kind === 'linear' ? 'embedding' : 'linear', rank, scale },
    ...{ a: transpose(b, sides.outputs), b: transpose(a, rank) },
    ...{ inputs: sides.outputs, outputs: sides.inputs, kernel: [] },
  };
}

/** Singular values and vectors of scale · B · A. */
export function svdOf(part: LoraPart): Promise<Svd> {
  return factoredSvd([{ ...part, weight: 1, density: 1, id: part.module }]);
}

export function measured(part: LoraPart, { s }: Svd): MeasuredModule {
  const { module, kind, rank, scale, inputs, outputs } = part;
  const squares = s.reduce((sum, value) => sum + value * value, 0);
  return { module, kind, shape: [outputs, inputs], rank, scale, squares, values: [...s] };
}
