import { scaleLinear } from 'd3-scale';
import { useEffect } from 'react';
import { LinkButton } from '../parts/Button';
import { ErrorCard } from '../parts/Message';
import { openSampleTexts } from '../state/measure-texts';
import { courseOf, measureCourse, nextOfCourse } from '../state/perplexity-course';
import { showTab } from '../state/studio';
import { useReady, useStudio, useStudioState } from '../studio-context';

/** The lines of the chosen texts: perplexity of the recipe's merge, from where the sliders were first to where they are. */
export function PerplexityCourse() {
  const studio = useStudio();
  const texts = useStudioState((s) => s.measure.texts).filter(({ chosen }) => chosen);
  const { points, failed } = useStudioState((s) => s.generation.course);
  const next = useStudioState((s) => {
    const found = nextOfCourse(s);
    return found && `${found.text.id} ${found.key}`;
  });
  useReady(openSampleTexts);
  useEffect(() => {
    if (next !== null) void measureCourse(studio);
  }, [studio, next]);
  const lines = texts.map(({ id, name }) => ({
    ...{ id, name },
    ...courseOf(points.filter(({ text }) => text === id).map(({ blocks }) => blocks)),
  }));
  const most = Math.max(
    ...lines.flatMap(({ places, half }) => places.map((place) => Math.abs(place) + half)),
  );
  return (
    <section className="stack" aria-label="Perplexity as the sliders move">
      <h3>Perplexity</h3>
      {failed ? <ErrorCard error={failed.error} /> : null}
      <ul>
        {lines.map(({ id, name, value, places, half, change }) => (
          <li key={id} className="course-line">
            <span className="truncate">{name}</span>
            <Line places={places} half={half} most={most} />
            <span className="mono">{value}</span>
            <span className="small quiet">{change}</span>
          </li>
        ))}
      </ul>
      <p className="small quiet">
        {points.length === 0 ? 'Measured once a text is generated. ' : ''}Up to 256 tokens of the third of
        each text that one may tune on, lower is better; the change since the first point, ± at 95&nbsp;%.
        Texts are chosen in <LinkButton onClick={() => showTab(studio, 'measure')}>Measure</LinkButton>.
      </p>
    </section>
  );
}

/** Width and height of a line's drawing. */
const [WIDE, HIGH] = [100, 32];

/** The line, with the interval of its last point. @param most the largest change of any line: all have one scale */
function Line({ places, half, most }: { places: readonly number[]; half: number; most: number }) {
  const x = scaleLinear([0, Math.max(1, places.length - 1)], [4, WIDE - 4]);
  const y = scaleLinear([-most || -1, most || 1], [HIGH - 2, 2]);
  const [at, last] = [x(places.length - 1), places.at(-1)];
  return (
    <svg className="plot-drawing" viewBox={`0 0 ${WIDE} ${HIGH}`} aria-hidden="true">
      <line className="plot-grid" x1={0} x2={WIDE} y1={HIGH / 2} y2={HIGH / 2} />
      <polyline className="plot-line" points={places.map((place, i) => `${x(i)},${y(place)}`).join(' ')} />
      {last === undefined ? null : (
        <>
          <line className="plot-line" x1={at} x2={at} y1={y(last - half)} y2={y(last + half)} />
          <circle className="plot-point" cx={at} cy={y(last)} r={3} />
        </>
      )}
    </svg>
  );
}
