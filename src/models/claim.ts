/** Every tensor of a checkpoint is claimed by the architecture, known to be no weight, or a reason not to run it. */
import { AmalgamError } from '../errors';
import type { Architecture, Block, Linear, Norm, Part, Vector } from './architecture';
import { unsupported } from './config-reader';
import { familyOf, tensorKey } from './families';
import { isBuffer } from './tensor-role';

/** A tensor an architecture computes with. */
interface ExpectedTensor {
  name: string;
  shape: readonly number[];
}

/** Everything with weights in a block or a part of one, in the order it is used. */
interface Leaves {
  linears: Linear[];
  norms: Norm[];
  vectors: Vector[];
}

/** Linear maps, norms and vectors anywhere inside a value. */
export function leavesOf(value: unknown, found: Leaves = { linears: [], norms: [], vectors: [] }): Leaves {
  if (Array.isArray(value)) for (const entry of value) leavesOf(entry, found);
  else if (typeof value === 'object' && value !== null) {
    if ('storage' in value) found.linears.push(value as Linear);
    else if ('epsilon' in value) found.norms.push(value as Norm);
    else if ('tensors' in value) found.vectors.push(value as Vector);
    else for (const entry of Object.values(value)) leavesOf(entry, found);
  }
  return found;
}

/** Every tensor the architecture needs, in the order it is used; a tied head is the embedding and not listed again. */
export function expectedTensors(architecture: Architecture): ExpectedTensor[] {
  const { embedding, final, vocab, hidden, blocks, planes } = architecture;
  const outside: ExpectedTensor[] = [{ name: embedding.token, shape: [vocab, embedding.width] }];
  if (embedding.perLayer) {
    const { table, rows, layers, width } = embedding.perLayer;
    outside.push({ name: table, shape: [rows, layers * width] });
  }
  if (embedding.positions) {
    const { tensor, rows, types } = embedding.positions;
    outside.push({ name: tensor, shape: [rows, hidden] });
    if (types) outside.push({ name: types.tensor, shape: [types.rows, hidden] });
  }
  return [
    ...outside,
    ...tensorsIn(embedding),
    ...tensorsIn(planes),
    ...blocks.flatMap(tensorsIn),
    ...tensorsIn(final),
    ...(final.tied ? [] : [{ name: final.head, shape: [vocab, embedding.width] }]),
  ];
}

/** Where the input of linear layers can be tapped: in front of a branch's first ones, and of its last one. */
export type LinearSite = `${string}_in` | `${string}_out`;

/**
 * The linear layers of a block with the input they share: where a calibration pass taps. What stands between the first and the
 * last layer of a branch (latent attention, the steps of a state space), routers and experts are not among them.
 */
export function linearSites(
  block: Block,
): { site: LinearSite; kind: Part['kind']; inputs: number; linears: readonly Linear[] }[] {
  return block.steps
    .flatMap((step) => step.branches)
    .flatMap(({ name, part }) =>
      'projections' in part
        ? [
            {
              site: `${name}_in` as const,
              kind: part.kind,
              inputs: part.projections[0]!.inputs,
              linears: part.projections,
            },
            {
              site: `${name}_out` as const,
              kind: part.kind,
              inputs: part.output.inputs,
              linears: [part.output],
            },
          ]
        : [],
    );
}

function tensorsIn(value: unknown): ExpectedTensor[] {
  const { linears, norms, vectors } = leavesOf(value);
  return [
    ...norms.flatMap(normTensors),
    ...linears.flatMap(linearTensors),
    ...vectors.flatMap((vector) => vector.tensors.flatMap((t) => ('name' in t ? [t] : []))),
  ];
}

function normTensors({ weight, bias, width }: Norm): ExpectedTensor[] {
  return [weight, bias].flatMap((name) => (typeof name === 'string' ? [{ name, shape: [width] }] : []));
}

function linearTensors({ weight, bias, inputs, outputs, storage, stack, update }: Linear): ExpectedTensor[] {
  const of = stack ? [stack.of] : [];
  return [
    { name: weight, shape: [...of, ...(storage === 'out_in' ? [outputs, inputs] : [inputs, outputs])] },
    ...(bias === undefined ? [] : [{ name: bias, shape: [...of, outputs] }]),
    ...(update ? [update.down, update.up].flatMap(linearTensors) : []),
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
  const storedName = new Map([...stored.keys()].map((name) => [tensorKey(name, family), name]));
  const claimed = new Map<string, string>();
  const headNames = new Set(architecture.masked ? tensorsIn(architecture.final).map(({ name }) => name) : []);
  for (const { name, shape } of expectedTensors(architecture)) {
    const found = storedName.get(tensorKey(name, family));
    if (found === undefined && headNames.has(name)) {
      throw unsupported(
        `The model has no head that fills in masked words (${name}): it was saved without, as sentence encoders and classifiers are. Measure it by its task.`,
      );
    }
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
  const unused = new Set(architecture.unused?.map((name) => tensorKey(name, family)));
  const known = new Set(claimed.values());
  const tiedHead = architecture.final.tied && family ? [family.head] : [];
  for (const name of stored.keys()) {
    if (known.has(name) || isBuffer(name) || tiedHead.includes(name)) continue;
    if (unused.has(tensorKey(name, family))) continue;
    throw unsupported(`The tensor ${name} has no place in a ${architecture.modelType} as it is known here.`);
  }
  return claimed;
}
