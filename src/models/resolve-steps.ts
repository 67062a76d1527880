/** The steps of a block: mixer and MLP with their norms, one after the other or side by side. */
import { displayName } from '../formats/names';
import type { Branch, Step, Vector } from './architecture';
import { needNumber, readFlag, readNumber, readSize, unsupported } from './config-reader';
import { type BlockContext, linear, makeNorm, pick, vector } from './resolve-context';
import { expertBranches } from './resolve-experts';
import { resolveMlp } from './resolve-mlp';
import type { NumberField } from './wiring';

/** A branch without its norms. */
type Bare = Pick<Branch, 'name' | 'part'> & { factor?: NumberField };

/** The steps of a block, and what its stream is multiplied by behind them. */
export function resolveSteps(block: BlockContext, attention: () => Bare): { steps: Step[]; layer?: Vector } {
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
    bare.map(({ name, part, factor }) => ({
      name,
      part,
      scale: scale * (factor ? needNumber(config, factor) : 1),
      ...(before && pick('in', norm(within))),
      ...pick('out', norm(behind)),
    }));
  const mixing = branches(makeMixer(block, kind, attention), norms.attentionIn, norms.attentionOut);
  if (wiring.single) return { steps: [{ branches: mixing }] };
  const hasExperts = wiring.experts?.layers(config, index);
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
    ...(wiring.perLayer?.factor !== undefined && { layer: vector(prefix + wiring.perLayer.factor, 1) }),
  };
}

/** What mixes tokens in a block of this kind. */
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

function perLayerStep(block: BlockContext): Step[] {
  const { config, wiring, hidden, prefix, index } = block;
  const width = wiring.perLayer && readSize(config, wiring.perLayer.width);
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
