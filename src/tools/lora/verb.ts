import { usage } from '../../cli/arguments';
import { columns } from '../../cli/print';
import { toolVerb } from '../../cli/tool-verb';
import { displayName } from '../../formats/names';
import { formatBytes, formatCounted, formatReal, formatShape } from '../../formats/quantity';
import { computedWords } from '../../reports/backend';
import { curveWords, cutWords, moduleRank, SHARES } from '../../reports/lora';
import { loraOptions, rankOf } from './options';
import type { ExtractLoraReport, MeasureLoraReport } from './report';

/** The most of a list that goes to the terminal; the files have all of it. */
const MOST_LINES = 12;

/** Text of an extraction for the terminal: size, ranks, error, and the changes it leaves out. */
export function extractText(report: ExtractLoraReport, folder: string): string {
  const { modules, saved, left, merged, files, notes } = report;
  const ranks = modules.map(({ rank }) => rank);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const whole = saved.length > 0 ? `, ${formatCounted(saved.length, 'tensor')} carried whole` : '';
  const errors = modules.map(({ error }) => error ?? 0);
  const worst = errors.indexOf(Math.max(...errors));
  const leftOut = left.map(
    ({ name, normDelta, why }) =>
      `not carried: ${displayName(name)}, ${why}${normDelta === null ? '' : ` (norm of the change ${formatReal(normDelta)})`}`,
  );
  return [
    `${merged.maxError === null ? 'Wrote' : 'Extracted'} ${formatCounted(modules.length, 'module')} of rank ${span(ranks)}${whole}: ${formatBytes(bytes)}`,
    ...(merged.maxError === null
      ? []
      : [
          `Merged back, ${formatReal(merged.error)} of the difference is left (largest single error ${formatReal(merged.maxError)}; worst module ${displayName(modules[worst]!.module)}: ${formatReal(errors[worst]!)})`,
        ]),
    ...cutWords(report),
    ...merged.failed.map(({ name, message }) => `not finite when merged: ${displayName(name)}, ${message}`),
    ...notes.map((note) => displayName(note, 2000)),
    ...leftOut.slice(0, MOST_LINES),
    ...(leftOut.length > MOST_LINES
      ? [`and ${leftOut.length - MOST_LINES} more; README.md names them all`]
      : []),
    `Written ${computedWords(report)}: ${folder}`,
  ].join('\n');
}

function span(ranks: readonly number[]): string {
  const least = Math.min(...ranks);
  const most = Math.max(...ranks);
  return least === most ? String(most) : `${least} to ${most}`;
}

/** Options of what is written, which a look at a LoRA or a difference has no use for. */
const WRITTEN = [
  'rank',
  'energy',
  'cutoff',
  'budget',
  'max-rank',
  'embeddings',
  'vectors',
  'dtype',
  'scale',
  'format',
];

export const verb = toolVerb({
  name: 'lora',
  subjects: ['lora'],
  several: true,
  about:
    'What a LoRA is made of: ranks, norms, scale, and the ranks that keep 90, 95 and 99 % of it; of a base and a fine-tune, the same of their difference. With --out it is written: one LoRA at other ranks, scaled, for PEFT, MLX or llama.cpp; of two models the difference, for PEFT. --energy keeps this share of each change, --cutoff singular values down to this share of the largest, --budget what captures most in so many bytes. --include and --exclude choose modules by a part of their path.',
  options: loraOptions,
  writes: () => false,
  check({ options, given, subjects }) {
    refuseRecipe(subjects);
    if (subjects.length > 2) throw usage('lora takes one LoRA, or a base and a fine-tune.');
    const isPair = subjects.length === 2;
    if (isPair && given.has('out') && rankOf(options) === null)
      throw usage('Ranks need exactly one of --rank, --energy, --cutoff and --budget.');
    const odd = ['scale', 'format'].find((flag) => isPair && given.has(flag));
    if (odd) throw usage(`--${odd} is for one LoRA.`);
    const idle = WRITTEN.find((flag) => given.has(flag) && !given.has('out'));
    if (idle) throw usage(`--${idle} says what is written: give --out DIR too.`);
  },
  read: async () => undefined,
  async run(
    calls,
    { models, engine, options, destination },
    onProgress,
  ): Promise<MeasureLoraReport | ExtractLoraReport> {
    const [first, finetuned] = models as [string, string?];
    const { maxRank, include, exclude, embeddings, vectors, scale, format, dtype, seed } = options;
    const modules = { engine, include, exclude };
    const rank = rankOf(options);
    if (finetuned !== undefined) {
      const pair = { base: first, finetuned, seed, ...modules };
      if (!destination) return calls.measureLora(pair, onProgress);
      const cut = { destination, rank: rank!, maxRank, embeddings, vectors, dtype };
      return calls.extractLora({ ...pair, ...cut }, onProgress);
    }
    if (!destination) return calls.measureLora({ lora: first, engine }, onProgress);
    const shape = { destination, rank, maxRank, scale, format, dtype };
    return calls.reshapeLora({ lora: first, ...modules, ...shape }, onProgress);
  },
  print: (report, folder) => ('files' in report ? extractText(report, folder) : measuredText(report)),
});

function refuseRecipe(subjects: readonly string[]): void {
  const recipe = subjects.find((name) => /\.ya?ml$/i.test(name));
  if (recipe) throw usage(`A recipe becomes a LoRA by a merge: amalgam merge ${recipe} --adapter --out DIR.`);
}

/** Text of a measured change for the terminal: what it is, module by module, and the ranks that keep most of it. */
export function measuredText({ modules, facts, notes }: MeasureLoraReport): string {
  // a column of blanks would be read as its neighbor: a change of two models has no rank, an image LoRA is read scaled
  const [hasRank, hasScale] = (['rank', 'scale'] as const).map((key) => modules.some((m) => m[key] !== null));
  const rows = modules.map(({ module, shape, rank, scale, squares, values }) => {
    const ranks = SHARES.map((share) => moduleRank({ squares, values }, share) ?? `>${values.length}`);
    return [
      displayName(module),
      formatShape(shape),
      ...(hasRank ? [rank === null ? '' : String(rank)] : []),
      ...(hasScale ? [scale === null ? '' : formatReal(scale)] : []),
      formatReal(Math.sqrt(squares)),
      ranks.join(' / '),
    ];
  });
  const heads = ['module', 'shape', ...(hasRank ? ['rank'] : []), ...(hasScale ? ['scale'] : [])];
  heads.push('‖Δ‖', 'rank of 90 / 95 / 99 %');
  return [
    ...facts.map(({ label, value }) => `${label.padEnd(12)} ${displayName(value, 200)}`),
    '',
    ...columns([heads, ...rows]),
    '',
    ...curveWords(modules),
    ...notes.map((note) => displayName(note, 2000)),
  ].join('\n');
}
