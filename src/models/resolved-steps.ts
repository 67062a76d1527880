/** The steps of a block: mixer and MLP with their norms, one after the other or side by side. */
import { displayName } from '../formats/names';
import type { BlockPlanes, Branch, Norm, Step, Vector } from './architecture';
import { needNumber, needSize, readFlag, readNumber, readSize, unsupported } from './config-reader';
import { type BlockContext, type Context, linear, makeNorm, pick, vector } from './resolution-context';
import { expertBranches, resolveMlp } from './resolved-experts';
import type { NumberField, PlanesWiring } from './wiring';

/** A branch without its norms. */
type Bare = Pick<Branch, 'name' | 'part' | 'ahead'> & { factor?: NumberField };

/** The steps of a block, what its stream is multiplied by behind them, and what happens to the streams beside it. */
export function resolveSteps(
  block: BlockContext,
  attention: () => Bare,
): { steps: Step[]; layer?: Vector; planes?: BlockPlanes } {
  const { config, wiring, hidden, prefix, index } = block;
  const kind = wiring.mixers?.of(config, index) ?? 'attention';
  const norms = { ...wiring.norms, ...wiring.mixers?.norms?.[kind] };
  const norm = (name: string | undefined) =>
    name === undefined ? undefined : makeNorm(block, prefix + name, hidden);
  const before = readFlag(config, norms.before ?? true);
  const scale = residualScale(block);
  const branches = (
    bare: readonly Bare[],
    within: string | undefined,
    behind: string | undefined,
  ): Branch[] =>
    bare.map(({ name, part, ahead, factor }) => ({
      name,
      part,
      ...pick('ahead', ahead),
      scale: scale * (factor ? needNumber(config, factor) : 1),
      ...(before && pick('in', norm(within))),
      ...pick('out', norm(behind)),
    }));
  const mixing = branches(makeMixer(block, kind, attention), norms.attentionIn, norms.attentionOut);
  if (wiring.single) return { steps: [{ branches: mixing }] };
  if (wiring.planes && wiring.laurel) {
    const mlp: Bare = { name: 'mlp', part: resolveMlp(block) };
    return {
      steps: [
        laurelStep(block, mixing, norm(norms.attentionIn)),
        { branches: branches([mlp], norms.mlpIn, norms.mlpOut) },
      ],
      planes: blockPlanes(block, wiring.planes),
    };
  }
  const beside = wiring.experts?.beside;
  if (wiring.experts && beside && readFlag(config, beside.when)) {
    const mlp: Bare = { name: 'mlp', part: resolveMlp(block) };
    return {
      steps: [
        { branches: mixing },
        {
          branches: [
            ...branches([mlp], norms.mlpIn, beside.mlpOut),
            ...branches(expertBranches(block), beside.in, beside.out),
          ],
          ...pick('sum', norm(norms.mlpOut)),
        },
        ...perLayerStep(block),
      ],
      ...layerFactor(block),
    };
  }
  const hasExperts = !beside && wiring.experts?.layers(config, index);
  const bare: Bare[] = hasExperts ? expertBranches(block) : [{ name: 'mlp', part: resolveMlp(block) }];
  const thinking = branches(bare, norms.mlpIn, norms.mlpOut);
  if (wiring.replacing) return { steps: replacingSteps(block, kind, mixing, thinking) };
  const after = (name: string | undefined) => (before ? {} : pick('after', norm(name)));
  const perLayer = perLayerStep(block);
  if (readFlag(config, wiring.parallel ?? false)) {
    return { steps: [{ branches: [...mixing, ...thinking] }, ...perLayer] };
  }
  return {
    steps: [
      { branches: mixing, ...after(norms.attentionIn) },
      { branches: thinking, ...after(norms.mlpIn) },
      ...perLayer,
    ],
    ...layerFactor(block),
  };
}

function layerFactor({ wiring, prefix }: BlockContext): { layer?: Vector } {
  const name = wiring.perLayer?.factor;
  return name === undefined ? {} : { layer: vector(prefix + name, 1) };
}

/** (x + attention + laurel) / √2: attention and the narrow residual read the same normed stream. */
function laurelStep(block: BlockContext, mixing: readonly Branch[], within: Norm | undefined): Step {
  const { config, wiring, hidden, prefix } = block;
  const { rank, left, right, norm } = wiring.laurel!;
  const width = needSize(config, rank);
  const laurel: Branch = {
    name: 'laurel',
    scale: Math.SQRT1_2,
    ...pick('in', within),
    part: {
      kind: 'laurel',
      projections: [linear(block, prefix + left, hidden, width, false)],
      output: linear(block, prefix + right, width, hidden, false),
      norm: makeNorm(block, prefix + norm, hidden),
    },
  };
  const attention = mixing.map((branch) => ({ ...branch, scale: branch.scale * Math.SQRT1_2 }));
  return { keep: Math.SQRT1_2, branches: [...attention, laurel] };
}

function blockPlanes(block: BlockContext, { count, modules, scaled }: PlanesWiring): BlockPlanes {
  const { config, hidden, prefix } = block;
  const n = needSize(config, count);
  const name = (module: string) => prefix + module;
  return {
    norm: makeNorm(block, name(modules.norm), hidden),
    router: linear(block, name(modules.router), hidden, n, false, 1 / hidden),
    predict: vector(`${name(modules.predict)}.weight`, n * n, n),
    correct: vector(`${name(modules.correct)}.weight`, n, n),
    ...(readFlag(config, scaled) && { scale: vector(name(modules.scale), hidden) }),
    share: perLayerStep(block)[0]!.branches[0]!,
  };
}

/** Token mixers of a block of this kind. */
function makeMixer(block: BlockContext, kind: string, attention: () => Bare): readonly Bare[] {
  const make = block.wiring.mixers?.kinds[kind];
  if (make === 'refused') {
    throw unsupported(
      `${displayName(block.config.fileName)}: layers of kind “${displayName(kind)}” cannot be run.`,
    );
  }
  if (make === 'mlp') return [{ name: 'mlp', part: resolveMlp(block) }];
  return make ? make(block, attention) : [attention()];
}

/** MiniMax: what norms make of the stream is the stream, and it and the branches have factors. */
function replacingSteps(
  { config, wiring }: BlockContext,
  kind: string,
  mixing: readonly Branch[],
  thinking: readonly Branch[],
): Step[] {
  const { keep, share } = wiring.replacing!;
  const step = (branches: readonly Branch[], name: string): Step => ({
    ...pick('entry', branches[0]!.in),
    keep: needNumber(config, keep[name]!),
    branches: branches.map(({ in: _, ...rest }) => ({ ...rest, scale: needNumber(config, share[name]!) })),
  });
  return [step(mixing, kind), step(thinking, 'mlp')];
}

/** Width of what a layer gets of the token itself; undefined where it gets nothing, 0 in some files. */
export function perLayerWidth({ config, wiring }: Context): number | undefined {
  const field = wiring.perLayer?.width;
  return !field || readNumber(config, field) === 0 ? undefined : readSize(config, field);
}

function perLayerStep(block: BlockContext): Step[] {
  const { wiring, hidden, prefix, index } = block;
  const width = perLayerWidth(block);
  if (width === undefined) return [];
  const { gate, out, norm } = wiring.perLayer!.modules;
  return [
    {
      branches: [
        {
          name: 'per_layer',
          scale: 1,
          out: makeNorm(block, prefix + norm, hidden),
          part: {
            kind: 'per_layer',
            activation: 'gelu_tanh',
            layer: index,
            projections: [linear(block, prefix + gate, hidden, width, false)],
            output: linear(block, prefix + out, width, hidden, false, Math.SQRT1_2),
          },
        },
      ],
    },
  ];
}

/** Factor of every branch. */
function residualScale({ config, wiring, layers }: BlockContext): number {
  const field = wiring.residualScale;
  if (!field) return 1;
  if (!('depth' in field)) return needNumber(config, field);
  const depth = readNumber(config, field.depth);
  return typeof depth === 'number' ? depth / Math.sqrt(layers) : 1;
}
