import { scaleLinear } from 'd3-scale';
import { useEffect } from 'react';
import { changeWords } from '../../reports/conclusion';
import { type Estimate, margin, meanLoss, pairedDifference, verdict } from '../../reports/paired-error';
import { LinkButton } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import type { CoursePoint } from '../state/generation-state';
import { openSampleTexts } from '../state/measure-texts';
import { measureCourse, nextOfCourse } from '../state/perplexity-course';
import { showTab } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** The lines of the chosen texts: perplexity of the recipe's merge, from where the sliders were first to where they are. */
export function PerplexityCourse() {
  const studio = useStudio();
  const texts = useStudioState((s) => s.measure.texts);
  const { points, failed } = useStudioState((s) => s.generation.course);
  const isReady = useStudioState((s) => s.engine.info !== null);
  const next = useStudioState((s) => {
    const found = nextOfCourse(s);
    return found && `${found.text.id} ${found.key}`;
  });
  useEffect(() => {
    if (isReady) void openSampleTexts(studio);
  }, [studio, isReady]);
  useEffect(() => {
    if (next !== null) void measureCourse(studio);
  }, [studio, next]);
  const shown = texts.filter(({ chosen }) => chosen);
  const choose = <LinkButton onClick={() => showTab(studio, 'measure')}>Measure</LinkButton>;
  if (shown.length === 0) {
    return (
      <p className="small quiet">With a text chosen in {choose}, its perplexity moves with the sliders.</p>
    );
  }
  const lines = shown.map(({ id, name }) => ({ id, name, ...lineOf(points.get(id) ?? []) }));
  const most = Math.max(...lines.flatMap(({ least, most: own }) => [-least, own]));
  return (
    <section className="course" aria-label="Perplexity as the sliders move">
      <h3>Perplexity</h3>
      {failed ? <ErrorCard error={failed.error} /> : null}
      <ul>
        {lines.map(({ id, name, value, title, places, half, change }) => (
          <li key={id} className="course-line">
            <span className="truncate">{name}</span>
            <Line places={places} half={half} most={most} />
            <span className="mono" title={title}>
              {value}
            </span>
            <span className="small quiet">{change}</span>
          </li>
        ))}
      </ul>
      <p className="small quiet">
        {points.size === 0 ? 'Measured once a text is generated. ' : ''}256 tokens of each text, lower is
        better, and the change since the first point (± at 95&nbsp;%). Of the part that is tuned on: {choose}{' '}
        reports of another.
      </p>
    </section>
  );
}

/** What is said and drawn of a line. Changes are of the mean loss, from the first point on. */
function lineOf(points: readonly CoursePoint[]) {
  const [first, last] = [points[0], points.at(-1)];
  const none = { value: '–', title: 'not measured yet', places: [], half: 0, change: '', least: 0, most: 0 };
  if (!first || !last) return none;
  const apart = points.map(({ blocks }) => pairedDifference([blocks], [first.blocks]));
  const places = apart.map((own) => own?.mean ?? 0);
  const loss = meanLoss([last.blocks]);
  const [value, own] = [Math.exp(loss.mean), margin(loss)];
  const title =
    own === null ? value.toFixed(4) : `${value.toFixed(4)} ± ${(own * value).toFixed(4)} by itself (95 %)`;
  const change = apart.at(-1);
  const half = (change && margin(change)) ?? 0;
  const words = change && points.length > 1 ? signedWords(change) : '';
  const [least, most] = [Math.min(...places) - half, Math.max(...places) + half];
  return { value: value.toFixed(2), title, places, half, change: words, least, most };
}

/** A change outside its error has a sign; of another only the error is said. */
function signedWords(change: Estimate): string {
  const words = changeWords(change, 1, false);
  const is = verdict(change);
  return is === 'alike' ? words.replace(/^[^±]*/, '') : `${is === 'lower' ? '\u2212' : '+'}${words}`;
}

/** Width and height of a line's drawing. */
const [WIDE, HIGH] = [100, 32];

/** The line, with the interval of its last point. @param most the largest change of any line: all have one scale */
function Line({ places, half, most }: { places: readonly number[]; half: number; most: number }) {
  const end = Math.max(1, places.length - 1);
  const x = scaleLinear([0, end], [2, WIDE - 6]);
  const y = scaleLinear([-(most || 1), most || 1], [HIGH - 2, 2]);
  const last = places.at(-1);
  return (
    <svg className="plot-drawing" viewBox={`0 0 ${WIDE} ${HIGH}`} aria-hidden="true">
      <line className="plot-grid" x1={0} x2={WIDE} y1={y(0)} y2={y(0)} />
      <polyline className="plot-line" points={places.map((place, i) => `${x(i)},${y(place)}`).join(' ')} />
      {last === undefined ? null : (
        <>
          <line
            className="plot-line"
            x1={x(places.length - 1)}
            x2={x(places.length - 1)}
            y1={y(last - half)}
            y2={y(last + half)}
          />
          <circle className="plot-point" cx={x(places.length - 1)} cy={y(last)} r={3} />
        </>
      )}
    </svg>
  );
}
