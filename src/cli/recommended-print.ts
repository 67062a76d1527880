/** The recommended merge in words: what was tried, and how its result compares. */
import { displayName } from '../formats/names';
import { formatSeconds } from '../formats/quantity';
import { OVERLAPS, type RecommendedReport } from '../reports/merge';
import { columns } from './print';

export function recommendedText(report: RecommendedReport): string {
  const { candidates, chosen, texts, base, contributors, merge, kept, overlap, prompt, answers } = report;
  const figure = (value: number) => value.toFixed(3);
  const tried = candidates.map(({ title, lambda, perplexity, reason, seconds }, i) => [
    i === chosen ? '*' : ' ',
    title,
    lambda === null ? (reason ?? '') : `λ ${lambda}`,
    perplexity === null ? '–' : figure(perplexity),
    formatSeconds(seconds),
  ]);
  const rows = [
    ['perplexity on the text of', ...texts.map(({ id }) => displayName(id))],
    ['base', ...base.map(figure)],
    ...contributors.map(({ id, perplexity }) => [displayName(id), ...perplexity.map(figure)]),
    ['merge', ...merge.map(figure)],
    ['gain kept', ...kept.map((share) => (share === null ? '–' : `${Math.round(100 * share)} %`))],
  ];
  const shared = overlap !== null && overlap > OVERLAPS;
  return [
    'Tried, by the perplexity on the texts together:',
    ...columns(tried),
    '',
    ...columns(rows),
    ...(shared
      ? ['', 'The contributors know some of the same: text of your own would say more about λ.']
      : []),
    '',
    `“${prompt}” goes on as`,
    ...answers.map(({ id, text }) => `  ${displayName(id)}: ${JSON.stringify(text)}`),
  ].join('\n');
}
