/** Options of measuring and collapsing layers. */
import { meantValues, type Options, type OptionValues } from '../../reports/option';

export const collapseOptions = {
  planner: {
    kind: 'choice',
    help: 'How layers are chosen: laco folds blocks while what the model says stays similar, influence takes the layers of least block influence, angular the block over which the stream turns least; experts leaves every layer and takes experts, those of least router weight times output.',
    label: 'how layers are chosen',
    values: ['influence', 'angular', 'laco', 'experts'],
    labels: ['Least influence', 'Most similar block', 'Greedy search', 'Experts of least weight'],
    default: 'laco',
    start: 'influence',
  },
  remove: {
    kind: 'integer',
    argument: 'N',
    help: 'Layers that go, or experts of each layer.',
    label: 'how many to remove',
    min: 1,
    either: 'target',
    start: 1,
  },
  ratio: {
    kind: 'number',
    argument: 'SHARE',
    help: 'Share of all layers, or experts, that goes.',
    label: 'share to remove',
    above: 0,
    below: 1,
    either: 'target',
    start: 0.25,
  },
  threshold: {
    kind: 'number',
    argument: 'T',
    help: 'Influence, or distance, up to which layers go.',
    above: 0,
    either: 'target',
    when: { planner: ['influence', 'angular'] },
    start: 0.1,
  },
  similarity: {
    kind: 'number',
    help: 'A block is folded while the similarity to the original stays above it.',
    label: 'similarity above',
    default: 0.75,
    min: -1,
    below: 1,
    when: { planner: ['laco'] },
  },
  block: { kind: 'integer', help: 'Layers that become one.', label: 'blocks of', default: 3, min: 2 },
  interval: {
    kind: 'integer',
    help: 'Layers to go down after a block was folded.',
    default: 2,
    min: 1,
    when: { planner: ['laco'] },
  },
  lowest: {
    kind: 'integer',
    help: 'The lowest layer where a block is tried.',
    label: 'lowest layer',
    default: 0,
    min: 0,
    when: { planner: ['laco'] },
  },
  highest: {
    kind: 'integer',
    argument: 'LAST',
    help: 'The highest layer where a block is tried; without, the last.',
    min: 0,
    only: 'command',
  },
  variant: {
    kind: 'choice',
    help: 'What becomes of what goes; without, rdsc for laco and drop for the others. mean is for experts: each into the one that is taken most alike.',
    label: 'what goes is',
    values: ['drop', 'rdsc', 'mean'],
    labels: ['dropped', 'folded into the layer before (RDSC)', 'averaged into the most similar expert'],
  },
  perLine: {
    kind: 'boolean',
    help: 'Each line of the text files is a text of its own.',
    default: false,
    only: 'command',
  },
  window: {
    kind: 'integer',
    help: 'Tokens run at once; longer texts are cut into windows that do not overlap.',
    label: 'window in tokens',
    default: 256,
    min: 2,
  },
  perplexity: {
    kind: 'boolean',
    flag: 'no-perplexity',
    help: 'Perplexity before and after is measured.',
    label: 'Perplexity before and after',
    default: true,
  },
} as const satisfies Options;

type Values = OptionValues<typeof collapseOptions>;

/** How layers are chosen and what becomes of them. */
export type CollapseSettings = Omit<Values, 'perLine' | 'window' | 'perplexity'>;

export type CollapseVariant = NonNullable<Values['variant']>;

/** Variant of the planner where none is set: `rdsc` for LaCo, `drop` for the others, as in their papers. */
export function variantOf({
  variant,
  planner,
}: Pick<CollapseSettings, 'variant' | 'planner'>): CollapseVariant {
  return variant ?? (planner === 'laco' ? 'rdsc' : 'drop');
}

/** The settings among the values of the form, or of the command. */
export function settingsOf(values: Values): CollapseSettings {
  const { perLine: _, window: __, perplexity: ___, ...settings } = meantValues(collapseOptions, values);
  return settings;
}
