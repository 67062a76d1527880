/** What finding the best merge says: a row as it is measured, and the table at the end. */
import { displayName } from '../formats/names';
import { formatCounted, formatSeconds } from '../formats/quantity';
import { type Contender, conclusion, leading } from '../reports/conclusion';
import {
  type BestRow,
  endedWords,
  type FindBestReport,
  frontOf,
  OVERLAPS,
  overfitWords,
} from '../reports/find-best';
import { margin, meanLoss, pairedDifference, type TextBlocks } from '../reports/paired-error';
import { columns } from './print';

/** Seconds, λ and what was found so far of a row that has just been measured. */
export function bestRowText(row: BestRow): string {
  const lambda = row.lambda === null ? '' : `, λ ${row.lambda}`;
  const part = row.blocks.reporting ? 'reporting' : 'choosing';
  const loss = lossOf(row.blocks[part]);
  const found =
    loss === null ? (row.error?.message ?? 'not measured') : `loss ${loss.toFixed(4)} on the ${part} part`;
  return `${displayName(row.label)}${lambda}: ${found}`;
}

/** Mean loss; null where a part was not measured, or is of a text too short to have one. */
function lossOf(blocks: TextBlocks | null): number | null {
  const mean = blocks && meanLoss(blocks).mean;
  return Number.isFinite(mean) ? mean : null;
}

/** Mean loss beside another's on the same text, with its error. */
function apartText(own: TextBlocks, other: TextBlocks, comparisons: number): string {
  const apart = pairedDifference(own, other);
  if (!apart || !Number.isFinite(apart.mean)) return '';
  const half = margin(apart, comparisons);
  return `${apart.mean > 0 ? '+' : '−'}${Math.abs(apart.mean).toFixed(4)}${half === null ? '' : ` ± ${half.toFixed(4)}`}`;
}

/** The table of all that was tried to find the best merge, with its errors, and the verdict. */
export function bestText(report: FindBestReport): string {
  const { texts, rows, best, lately, kept, overlap, seconds } = report;
  const isTask = texts.some(({ kind }) => kind === 'task');
  const all = rows.flatMap(({ blocks: { reporting }, ...row }): (Contender & { id: string })[] => {
    const kind = row.kind === 'base' || row.kind === 'contributor' ? row.kind : 'merge';
    return reporting && lossOf(reporting) !== null
      ? [{ id: row.id, label: displayName(row.label), kind, texts: reporting }]
      : [];
  });
  const { leader, isChosen, comparisons } = leading(
    all,
    all.find(({ id, kind }) => id === best && kind === 'merge'),
  );
  const value = (of: TextBlocks) => {
    const mean = lossOf(of);
    return mean === null ? '–' : (isTask ? 1 - mean : Math.exp(mean)).toFixed(4);
  };
  const against = (own: Contender) =>
    leader && leader !== own ? apartText(own.texts, leader.texts, comparisons) : '';
  // rivals were compared on more text: the numbers of a column are of what all have read
  const compared = rows.flatMap(({ blocks }) => (blocks.choosing ? [blocks.choosing] : []));
  const readByAll = texts.map((_, t) => Math.min(...compared.map((own) => own[t]!.length)));
  const lines = rows.map((row) => {
    const own = all.find(({ id }) => id === row.id);
    return [
      row.id === best ? '*' : '',
      displayName(row.label),
      row.lambda === null ? '' : String(row.lambda),
      row.blocks.tuning ? value(row.blocks.tuning) : '–',
      row.blocks.choosing ? value(row.blocks.choosing.map((text, t) => text.slice(0, readByAll[t]))) : '–',
      row.error ? row.error.message : own ? value(own.texts) : '–',
      own ? against(own) : '',
      `${row.tried}`,
      formatSeconds(row.seconds),
    ];
  });
  const named = texts.map(
    ({ name, tokens }) =>
      `${displayName(name)} (${formatCounted(tokens.reporting, isTask ? 'item' : 'token')})`,
  );
  const scope = 'on that part';
  const left = rows.filter(({ blocks }) => blocks.choosing && !blocks.reporting).length;
  const said =
    leader && conclusion(leader, { all, leader, isChosen, comparisons, isAccuracy: isTask, scope, left });
  const shares = kept.flatMap((share, i) =>
    share === null || !Number.isFinite(share) || share < 0
      ? []
      : `${Math.round(100 * share)} % of ${displayName(texts[i]!.name)}`,
  );
  const worse = kept.flatMap((share, i) => (share !== null && share < 0 ? displayName(texts[i]!.name) : []));
  const chosen = rows.find(({ id }) => id === best)!;
  const isModel = chosen.kind === 'base' || chosen.kind === 'contributor';
  const merges = rows.filter(({ kind }) => kind !== 'base' && kind !== 'contributor');
  const tries = merges.reduce((sum, { tried }) => sum + tried, 0);
  const ended = endedWords(report);
  const front = frontOf(rows);
  const onFront = (own: BestRow, t: number): string[] => {
    const alone = ({ blocks }: BestRow) => [blocks.reporting![t]!];
    const best = front.at(-t)!;
    if (!own.blocks.reporting || !best.blocks.reporting)
      return [own.blocks.reporting ? value(alone(own)) : '–', ''];
    const apart = own === best ? '' : apartText(alone(own), alone(best), 2 * (front.length - 1));
    return [value(alone(own)), apart];
  };
  return [
    `On the part that nothing was tuned or chosen on, of ${named.join(', ')}:`,
    ...columns([
      [
        '',
        'merge',
        'λ',
        'tuned on',
        'chosen on',
        isTask ? 'metric' : 'perplexity',
        `loss beside ${leader?.label ?? 'the best'}`,
        'tried',
        'time',
      ],
      ...lines,
    ]),
    '',
    ...(said ? [`${said.lead}${said.rest}`] : []),
    ...rows.flatMap((row) => overfitWords({ ...row, label: displayName(row.label) }, rows, isTask) ?? []),
    ...(front.length > 1
      ? [
          '',
          `The front as it was on the choosing part, with the numbers of this one, from the best on ${displayName(texts[0]!.name)} to that on ${displayName(texts[1]!.name)}:`,
          ...columns([
            [
              'merge',
              ...texts.flatMap(({ name }, t) => [
                displayName(name),
                `loss beside ${displayName(front.at(-t)!.label)}`,
              ]),
            ],
            ...front.map((row) => [displayName(row.label), ...texts.flatMap((_, t) => onFront(row, t))]),
          ]),
          '',
        ]
      : []),
    `* ${displayName(chosen.label)}: chosen on the choosing part${isModel ? ', where no merge was better than it beyond the error' : ''}.`,
    ...(shares.length > 0
      ? [`Of what the contributors gained on their own text it keeps ${shares.join(', ')}.`]
      : []),
    ...(worse.length > 0 ? [`It is worse than the base on the text of ${worse.join(', ')}.`] : []),
    ...(overlap !== null && overlap > OVERLAPS
      ? ['The contributors know some of the same: text of your own would say more about λ.']
      : []),
    `±: 95 %${comparisons > 1 ? ` for all ${comparisons} comparisons together` : ''}. Numbers without ± are compared by the differences beside them alone.`,
    '–: not measured there: a model has no settings to tune, and on the reporting part are those that may be the best, as far as the time goes.',
    ...(lately && report.ended !== 'converged'
      ? [
          `The last step (${lately.step}) brought ${lately.gain.toFixed(4)} in ${formatSeconds(lately.seconds)}.`,
        ]
      : []),
    `${formatCounted(merges.length, 'merge')} tried at ${formatCounted(tries, 'setting')} in ${formatSeconds(seconds)}.${ended ? ` ${ended}.` : ''}`,
  ].join('\n');
}
