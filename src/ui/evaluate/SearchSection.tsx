import '../styles/tools.css';
import { useState } from 'react';
import { formatSetting } from '../../formats/quantity';
import type { SearchPoint } from '../../reports/search';
import {
  acrossScale,
  fewTicks,
  PlotAxes,
  PlotPoint,
  PlotRing,
  type PlotRoom,
  PlotSlider,
  upwardScale,
} from '../charts/PlotFrame';
import { Button } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import { LabeledNumber } from '../parts/LabeledNumber';
import { LinkButton } from '../parts/LinkButton';
import { Section } from '../parts/Section';
import { Select } from '../parts/Select';
import { ToolBar } from '../parts/ToolBar';
import type { SearchRun } from '../state/evaluation-state';
import { isAtWork } from '../state/job';
import {
  bestCandidate,
  OBJECTIVES,
  type Objective,
  type SearchChoices,
  startSearch,
  takeCandidate,
  variableTitle,
  whyNotSearch,
} from '../state/search';
import { useNarrow, useStudio, useStudioState } from '../studio-context';

/** Weights, λ and density searched for on the chosen texts or tasks: every candidate in a chart, any of them one click from the recipe. */
export function SearchSection() {
  const studio = useStudio();
  const [choices, setChoices] = useState<SearchChoices>({ by: 'perplexity', evaluations: 60, seed: 0 });
  const why = useStudioState((s) => whyNotSearch(s, choices));
  const search = useStudioState((s) => s.evaluation.search);
  const written = useStudioState((s) => s.recipe.asWritten !== null);
  if (written) return null;
  return (
    <Section title="Search" className="evaluate-section">
      <p className="small quiet">
        Which weights, λ and density make the best merge of the recipe’s method? Candidates are drawn by
        CMA-ES from the recipe’s values on, merged in memory, and measured on the texts or the tasks chosen
        above. Generations are measured whole; the same search continues where it was stopped.
      </p>
      <div className="row wrap apart search-settings">
        <label className="labeled">
          <span>Measure by</span>
          <Select<SearchChoices['by']>
            value={choices.by}
            options={[
              { value: 'perplexity', label: 'perplexity on the texts' },
              { value: 'accuracy', label: 'accuracy on the tasks' },
            ]}
            onChange={(by) => setChoices({ ...choices, by })}
          />
        </label>
        <LabeledNumber
          label="Merges to measure"
          value={choices.evaluations}
          min={0}
          max={10_000}
          onChange={(evaluations) => setChoices({ ...choices, evaluations })}
        />
        <LabeledNumber
          label="Seed"
          value={choices.seed}
          min={0}
          max={10_000}
          onChange={(seed) => setChoices({ ...choices, seed })}
        />
        <Button className="strong" why={why} onClick={() => void startSearch(studio, choices)}>
          Search
        </Button>
      </div>
      <ToolBar kinds={['search']} />
      {search?.error ? <ErrorCard error={search.error} /> : null}
      {search ? <Found search={search} /> : null}
    </Section>
  );
}

function Found({ search }: { search: SearchRun }) {
  const studio = useStudio();
  const active = useStudioState((s) => isAtWork(s, 'search'));
  const [picked, setPicked] = useState<number | null>(null);
  const { points } = search;
  const objective = OBJECTIVES[search.by];
  const best = bestCandidate(search);
  const at = picked !== null && picked < points.length ? picked : best;
  const chosen = points[at];
  const [first] = points;
  if (!first || !chosen || objective.of(chosen) === null) return null;
  const titleOf = (name: string) => variableTitle(search.recipe, name);
  const values = Object.entries(chosen.values).map(
    ([name, value]) => `${titleOf(name)} ${formatSetting(value, 0.001)}`,
  );
  return (
    <>
      <SearchPlot
        objective={objective}
        points={points}
        best={best}
        chosen={at}
        titleOf={titleOf}
        onChoose={setPicked}
      />
      <p className="verdict">
        {at === best ? `Best of ${points.length}${active ? ' so far' : ''}: ` : `Candidate ${at + 1}: `}
        <strong>{values.join(', ')}</strong>, {objective.text(chosen)}
        {at === 0 ? '' : ` (the recipe as it was: ${objective.text(first)})`}.{' '}
        <LinkButton onClick={() => takeCandidate(studio, search, chosen)}>Use these settings</LinkButton>
        {at === best ? null : <LinkButton onClick={() => setPicked(null)}>Back to the best</LinkButton>}
      </p>
    </>
  );
}

const ROOM = { height: 240, left: 46, right: 12, top: 12, bottom: 30, foot: 4 };
const ORDER = 'order of measuring';

interface SearchPlotProps {
  objective: Objective;
  points: readonly SearchPoint[];
  best: number;
  chosen: number;
  /** Title of a setting. */
  titleOf(name: string): string;
  onChoose(index: number): void;
}

/** Objective of every candidate, over the order of measuring or over one of the settings. */
function SearchPlot({ objective, points, best, chosen, titleOf, onChoose }: SearchPlotProps) {
  const [axis, setAxis] = useState(ORDER);
  const names = Object.keys(points[0]?.values ?? {});
  const along = names.includes(axis) ? axis : ORDER;
  const room: PlotRoom = { ...ROOM, width: useNarrow() ? 400 : 640 };
  const drawn = points.flatMap((point, i) => {
    const value = objective.of(point);
    return value === null ? [] : [{ i, value, x: along === ORDER ? i + 1 : point.values[along]! }];
  });
  const [least, most] = extent(drawn.map((p) => p.value));
  const wide = least > 0 && most > 4 * least;
  const x = acrossScale(room, padded(extent(drawn.map((p) => p.x))));
  const y = upwardScale(room, padded([least, most]), wide);
  const improved = drawn.filter((p, k) =>
    drawn.slice(0, k).every((q) => objective.isBetter(points[p.i]!, points[q.i]!)),
  );

  const order = [...drawn].sort((a, b) => a.x - b.x).map((p) => p.i);
  const at = order.indexOf(chosen);
  const keys = new Map([
    ['ArrowLeft', order[at - 1]],
    ['ArrowRight', order[at + 1]],
    ['Home', order[0]],
    ['End', order.at(-1)],
  ]);
  const words = (i: number) => `candidate ${i + 1}: ${objective.text(points[i]!)}`;
  return (
    <>
      <label className="labeled">
        <span>Along</span>
        <Select
          value={along}
          options={[ORDER, ...names].map((name) => ({
            value: name,
            label: name === ORDER ? name : titleOf(name),
          }))}
          onChange={setAxis}
        />
      </label>
      <PlotSlider
        room={room}
        label="Candidate of the search; left and right go through them"
        min={1}
        max={points.length}
        now={chosen + 1}
        words={`${words(chosen)}${chosen === best ? ', the best' : ''}`}
        keys={keys}
        onChoose={onChoose}
      >
        <PlotAxes
          room={room}
          x={x}
          y={y}
          along={6}
          up={fewTicks(y, wide)}
          title={along === ORDER ? along : titleOf(along)}
        />
        {along === ORDER ? (
          <polyline
            className="plot-line"
            stroke="var(--model-0)"
            points={improved.map((p) => `${x(p.x)},${y(p.value)}`).join(' ')}
          />
        ) : null}
        {drawn.map((p) => (
          <PlotPoint
            key={p.i}
            x={x(p.x)}
            y={y(p.value)}
            words={words(p.i)}
            fill="var(--model-0)"
            onChoose={() => onChoose(p.i)}
          />
        ))}
        {(['best', 'chosen'] as const).map((around) => {
          const place = drawn.find((p) => p.i === (around === 'best' ? best : chosen));
          return place ? <PlotRing key={around} x={x(place.x)} y={y(place.value)} around={around} /> : null;
        })}
      </PlotSlider>
    </>
  );
}

function extent(values: readonly number[]): [number, number] {
  return [Math.min(...values), Math.max(...values)];
}

/** Bounds that are not the same. */
function padded([least, most]: [number, number]): [number, number] {
  if (most > least) return [least, most];
  return least === 0 ? [-1, 1] : [least - 0.1 * Math.abs(least), least + 0.1 * Math.abs(least)];
}
