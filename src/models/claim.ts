/** Every tensor of a checkpoint is claimed by the architecture, known to be no weight, or a reason not to run it. */
import { AmalgamError } from '../errors';
import type { Architecture, Block, Linear, Norm } from './architecture';
import { unsupported } from './config-reader';
import { canonicalName, familyOf } from './families';
import { isBuffer } from './tensor-role';

/** A tensor an architecture computes with. */
export interface ExpectedTensor {
  name: string;
  shape: readonly number[];
}

/** Every tensor the architecture needs, in the order it is used; a tied head is the embedding and not listed again. */
export function expectedTensors(architecture: Architecture): ExpectedTensor[] {
  const { embedding, final, vocab, hidden, blocks } = architecture;
  const outside: ExpectedTensor[] = [{ name: embedding.token, shape: [vocab, embedding.width] }];
  if (embedding.positions) {
    outside.push({ name: embedding.positions.tensor, shape: [embedding.positions.rows, hidden] });
  }
  return [
    ...outside,
    ...(embedding.projection ? linearTensors(embedding.projection) : []),
    ...normTensors(embedding.norm),
    ...blocks.flatMap(blockTensors),
    ...normTensors(final.norm),
    ...(final.projection ? linearTensors(final.projection) : []),
    ...(final.tied ? [] : [{ name: final.head, shape: [vocab, embedding.width] }]),
  ];
}

/** The linear layers of a block with the input they share: where a calibration pass taps. */
export function linearSites(
  block: Block,
): { site: LinearSite; inputs: number; linears: readonly Linear[] }[] {
  const { attention, mlp } = block;
  return [
    { site: 'attention_in', inputs: attention.projections[0]!.inputs, linears: attention.projections },
    { site: 'attention_out', inputs: attention.output.inputs, linears: [attention.output] },
    { site: 'mlp_in', inputs: mlp.projections[0]!.inputs, linears: mlp.projections },
    { site: 'mlp_out', inputs: mlp.output.inputs, linears: [mlp.output] },
  ];
}

/** The four inputs of a block's linear layers: normed stream, mixed values, normed stream, activated MLP. */
export type LinearSite = 'attention_in' | 'attention_out' | 'mlp_in' | 'mlp_out';

function blockTensors(block: Block): ExpectedTensor[] {
  const { attention, mlp } = block;
  return [
    ...normTensors(block.attentionIn),
    ...attention.projections.flatMap(linearTensors),
    ...normTensors(attention.queryNorm),
    ...normTensors(attention.keyNorm),
    ...linearTensors(attention.output),
    ...normTensors(block.attentionOut),
    ...normTensors(block.attentionAfter),
    ...normTensors(block.mlpIn),
    ...mlp.projections.flatMap(linearTensors),
    ...linearTensors(mlp.output),
    ...normTensors(block.mlpOut),
    ...normTensors(block.mlpAfter),
  ];
}

function normTensors(norm: Norm | undefined): ExpectedTensor[] {
  if (!norm) return [];
  const shape = [norm.width];
  return [{ name: norm.weight, shape }, ...(norm.bias === undefined ? [] : [{ name: norm.bias, shape }])];
}

function linearTensors({ weight, bias, inputs, outputs, storage }: Linear): ExpectedTensor[] {
  return [
    { name: weight, shape: storage === 'out_in' ? [outputs, inputs] : [inputs, outputs] },
    ...(bias === undefined ? [] : [{ name: bias, shape: [outputs] }]),
  ];
}

/**
 * Matches stored tensors with the architecture's names: with or without the family's prefix. A stored head beside a
 * tied embedding is ignored, as transformers ignores it; so are buffers (`isBuffer`).
 *
 * @param stored shapes by stored name
 * @returns the architecture's name → the stored name
 * @throws AmalgamError `TensorMissing`, `ShapeMismatch`, `ArchitectureUnsupported` (a tensor nobody claims)
 */
export function claimTensors(
  architecture: Architecture,
  stored: ReadonlyMap<string, { shape: readonly number[] }>,
): Map<string, string> {
  const family = familyOf(architecture.modelType);
  const storedName = new Map([...stored.keys()].map((name) => [canonicalName(name, family), name]));
  const claimed = new Map<string, string>();
  for (const { name, shape } of expectedTensors(architecture)) {
    const found = storedName.get(canonicalName(name, family));
    if (found === undefined) {
      throw new AmalgamError(
        'TensorMissing',
        `The model has no tensor ${name}, which a ${architecture.modelType} needs.`,
        'Its config.json and its weights do not belong together, or the copy is incomplete. Get it again.',
      );
    }
    const actual = stored.get(found)!.shape;
    if (actual.length !== shape.length || actual.some((extent, i) => extent !== shape[i])) {
      throw new AmalgamError(
        'ShapeMismatch',
        `${found} is [${actual.join(', ')}], but its config.json asks for [${shape.join(', ')}].`,
        'The config.json and the weights do not belong together. Get both from one place.',
      );
    }
    claimed.set(name, found);
  }
  const known = new Set(claimed.values());
  const tiedHead = architecture.final.tied && family ? [family.head] : [];
  for (const name of stored.keys()) {
    if (known.has(name) || isBuffer(name) || tiedHead.includes(name)) continue;
    throw unsupported(`The tensor ${name} has no place in a ${architecture.modelType} as it is known here.`);
  }
  return claimed;
}
