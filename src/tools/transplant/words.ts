/** Sentences on another tokenizer for a model: for the card and the terminal. */
import { madeCard, markdownText, nameCode } from '../../formats/model-card';
import { displayName } from '../../formats/names';
import {
  counted,
  formatBytes,
  formatCount,
  formatCounted,
  formatPercent,
  formatSeconds,
} from '../../formats/quantity';
import { computedWords } from '../../reports/backend';
import { isFitted, kOf, type TransplantForm } from './options';
import { qualityWords, type TransplantPlan, type TransplantReport } from './report';

/** How rows of new tokens are made. */
function wayWords(form: TransplantForm, landmarks: number): string {
  const made = {
    omp: `of up to ${kOf(form)} of ${counted(landmarks, 'shared token')} (orthogonal matching pursuit)`,
    subwords: 'of the pieces of their text',
    neighbors: `of the ${kOf(form)} nearest of ${counted(landmarks, 'shared token')}`,
    mean: 'the mean of the model’s',
    zero: 'zero',
  }[form.way];
  const { shared, donor } = { shared: 'as long as shared rows are', donor: 'as long as the donor has them' };
  const length = { made: '', shared, donor }[form.magnitude];
  return [made, ...(form.way !== 'zero' && length ? [length] : [])].join(', ');
}

function tokenWords({ tokens, rows }: Pick<TransplantPlan, 'tokens' | 'rows'>): string {
  const shared = `${formatCounted(tokens.shared, 'token')} of both, ${formatCount(tokens.special)} of them special`;
  return `${shared}; ${formatCount(tokens.new)} new; ${formatCount(rows.before)} → ${formatCounted(rows.after, 'row')}`;
}

/** What was measured, in a line each; none where nothing was. */
function measuredWords({ left, quality }: Pick<TransplantReport, 'left' | 'quality'>): string[] {
  return [
    ...left.map(
      ({ tensor, mean }) => `${tensor}: ${formatPercent(mean)} of the donor's new rows is left unmade`,
    ),
    ...(quality
      ? [
          `${qualityWords(quality.before)} before, ${qualityWords(quality.after)} after, on the same text${quality.after.margin === null ? '' : ' (±: 95 %, each by itself)'}`,
        ]
      : []),
  ];
}

export function planText(plan: TransplantPlan): string {
  const { form, landmarks, multiplyAdds, seconds, peakBytes, bytesToRead, bytesToWrite, notes } = plan;
  return [
    tokenWords(plan),
    `Rows of new tokens: ${wayWords(form, landmarks)}`,
    ...(isFitted(form)
      ? [`Making them: ${multiplyAdds.toExponential(1)} multiply-adds, about ${formatSeconds(seconds)} here`]
      : []),
    `Memory ${formatBytes(peakBytes)}, to read ${formatBytes(bytesToRead)}, to write ${formatBytes(bytesToWrite)}`,
    ...notes.map((note) => displayName(note, 2000)),
  ].join('\n');
}

export function transplantText(report: TransplantReport, folder: string): string {
  const { form, landmarks, fitSeconds, shards, notes } = report;
  const bytes = shards.reduce((sum, shard) => sum + shard.bytes, 0);
  return [
    tokenWords(report),
    `Rows of new tokens: ${wayWords(form, landmarks)}, made in ${formatSeconds(fitSeconds)}`,
    ...measuredWords(report),
    ...notes.map((note) => displayName(note, 2000)),
    `Written ${computedWords(report)}: ${folder}, ${formatBytes(bytes)}`,
  ].join('\n');
}

/**
 * The README.md of the model.
 *
 * @param hubModel id of the original where it is on the Hub
 */
export function transplantCard(
  report: Omit<TransplantReport, 'shards' | 'files' | 'seconds' | 'stages' | 'inputs'>,
  hubModel: string | undefined,
): string {
  const { model, donor, version, form, landmarks, notes } = report;
  return madeCard(hubModel, {
    tag: 'tokenizer-transplant',
    title: `${nameCode(model)} with the tokenizer of ${nameCode(donor)}`,
    lead: `Made with Amalgam ${markdownText(version)}. It was not trained afterwards: rows of new tokens are approximations.`,
    facts: [
      tokenWords(report),
      `Rows of new tokens: ${wayWords(form, landmarks)}`,
      ...measuredWords(report),
      ...notes,
    ],
  });
}
