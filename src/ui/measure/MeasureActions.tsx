import { formatAbout, formatCount, formatCounted, formatLeft } from '../../formats/quantity';
import { type BestStep, endedWords } from '../../reports/find-best';
import { LinkButton } from '../parts/Button';
import { choices, Select } from '../parts/fields';
import { JobButton, Progress } from '../parts/ToolBar';
import { isAtWork } from '../state/job';
import { find, measure, whyNotFind, whyNotMeasure } from '../state/measure';
import {
  expectedSeconds,
  type MissingCell,
  missingCells,
  type MeasureTable as Table,
} from '../state/measure-table';
import { editSlice } from '../state/studio';
import { PHASE_WORDS } from '../state/tabs';
import { useStudio, useStudioState } from '../studio-context';

/** Measures what is missing of runs and models, or shows how far that is. */
export function Measuring({ table }: { table: Table }) {
  const studio = useStudio();
  const why = useStudioState(whyNotMeasure);
  const atWork = useStudioState((s) => isAtWork(s, 'evaluation'));
  const own = table.rows.filter(({ row }) => row.group !== 'tried');
  const missing = missingCells({ ...table, rows: own });
  const done = table.columns.length > 0 && missing.length === 0;
  const nothing = own.length === 0 ? 'There is nothing to measure yet.' : null;
  return (
    <>
      {atWork ? <AtWork /> : null}
      <JobButton
        kind="evaluation"
        why={why ?? (done ? 'Every number of runs and models is in the table.' : nothing)}
        tip="Base and contributors first, then the runs"
        onClick={() => void measure(studio)}
      >
        Measure
        {missing.length > 0 ? <span className="quiet"> {amountWords('number', missing, table)}</span> : null}
      </JobButton>
    </>
  );
}

/** `12 numbers, about 13 s`. */
function amountWords(what: string, missing: readonly MissingCell[], table: Table): string {
  const seconds = expectedSeconds(missing, table);
  return `${formatCounted(missing.length, what)}${seconds === null ? '' : `, ${formatAbout(seconds)}`}`;
}

const BUDGETS = choices({ '20': '20 s', '40': '40 s', '120': '2 min', '600': '10 min', '3600': '1 h' });

const STEPS: readonly { text: string; tip: string; steps: readonly BestStep[] }[] = [
  {
    text: 'Find the best',
    tip: 'All methods, then Gram merges, then a search around the best, as long as there is time',
    steps: ['methods', 'gram', 'search'],
  },
  { text: 'Try all methods', tip: 'Every method that fits, each at its own λ', steps: ['methods', 'gram'] },
  {
    text: 'Search weights and λ',
    tip: 'Weights, λ and density by CMA-ES, from the best that is known on',
    steps: ['search'],
  },
];

/** Ways to try merges, or how far that is. */
export function Trying({ table }: { table: Table }) {
  const studio = useStudio();
  const why = useStudioState(whyNotFind);
  const atWork = useStudioState((s) => isAtWork(s, 'search'));
  const budget = useStudioState((s) => s.measure.budget);
  const rows = table.rows.filter(({ row }) => row.group === 'tried');
  const missing = missingCells({ ...table, rows });
  return (
    <>
      {atWork ? <AtWork /> : <Ended />}
      {missing.length > 0 && !atWork && why === null ? (
        <LinkButton
          onClick={() =>
            void measure(
              studio,
              rows.map(({ row }) => row),
            )
          }
        >
          measure {amountWords('missing number', missing, table)}
        </LinkButton>
      ) : null}
      <div className="row wrap tight">
        {STEPS.map(({ text, tip, steps }, i) =>
          atWork && i > 0 ? null : (
            <JobButton key={text} kind="search" why={why} tip={tip} onClick={() => void find(studio, steps)}>
              {text}
            </JobButton>
          ),
        )}
        {atWork ? null : (
          <Select
            className="field"
            aria-label="Time that trying may take"
            value={String(budget)}
            options={BUDGETS}
            onChange={(next) => editSlice(studio, 'measure', { budget: Number(next) })}
          />
        )}
      </div>
    </>
  );
}

/** Why the last try ended, where something was left, and what its last step brought. */
function Ended() {
  const report = useStudioState((s) => s.measure.found?.report);
  const words = report && endedWords(report);
  return words ? <span className="quiet">{words}</span> : null;
}

const STEP_WORDS: Readonly<Record<string, string>> = {
  writing: 'contributors read and generate text',
  methods: 'methods',
  gram: 'Gram merges',
  search: 'search',
};

/** How far the job of the tab is. */
function AtWork() {
  const job = useStudioState((s) => s.job);
  const { phase = '', item = '', share = 0, counted = null, secondsLeft = null } = job?.progress ?? {};
  const isWriting = phase === 'writing';
  const words = [
    STEP_WORDS[phase],
    isWriting ? '' : item || (PHASE_WORDS[phase] ?? phase),
    counted && !isWriting ? `${formatCount(counted.done)} of ${formatCount(counted.total)}` : '',
  ].filter(Boolean);
  return (
    <>
      <Progress label="Measuring" share={share} className="bar-room" />
      <span className="quiet truncate">{job?.canceling ? 'Canceling…' : words.join(' · ')}</span>
      <span className="quiet">{formatLeft(secondsLeft)}</span>
    </>
  );
}
