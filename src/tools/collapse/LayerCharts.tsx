/** The layers of a model in pictures: what each does, which go, and what is left without a block. */
import { scaleLinear } from 'd3-scale';
import { useMemo } from 'react';
import { errorReport } from '../../errors';
import { counted, formatReal } from '../../formats/quantity';
import { chooseLayers, layerWords, settingsProblem } from './choose-layers';
import type { CollapseSettings } from './options';
import type { MeasureLayersReport } from './report';

interface LayerMapProps {
  settings: CollapseSettings;
  measured: MeasureLayersReport | null;
  /** null where it is not known. */
  layers: number | null;
}

/** Every layer with its block influence as a bar, and whether it goes. */
export function LayerMap({ settings, measured, layers }: LayerMapProps) {
  const going = useMemo(() => goingLayers(settings, measured), [settings, measured]);
  if (layers === null) {
    return <p className="small quiet">The number of layers is known once the model is measured.</p>;
  }
  const gone = new Set(typeof going === 'string' ? [] : going);
  const most = Math.max(...(measured?.influence ?? [0]));
  return (
    <div className="stack">
      <p className="small" role="status">
        {going === null ? (
          <span className="quiet">
            {settings.planner === 'laco'
              ? 'Which layers are removed is found by trying.'
              : 'Measure the layers to see which would be removed.'}
          </span>
        ) : typeof going === 'string' ? (
          <span className="tone-bad">{going}</span>
        ) : going.length === 0 ? (
          <span className="quiet">No layer is within the threshold, so there is nothing to do.</span>
        ) : (
          <>
            <strong>
              {going.length === 1 ? 'Layer' : 'Layers'} {layerWords(going)}
            </strong>{' '}
            of {layers} {going.length === 1 ? 'goes' : 'go'}, {layers - going.length} stay.
          </>
        )}
      </p>
      {measured ? (
        <>
          <ol className="layer-map" aria-label="Layers">
            {measured.influence.map((influence, layer) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a layer is its index.
              <li key={layer} className="layer-row" data-goes={gone.has(layer) || undefined}>
                <span className="layer-number">
                  <span className="visually-hidden">layer </span>
                  {layer}
                </span>
                <span className="bar">
                  <span
                    className="bar-fill"
                    style={{ width: `${most > 0 ? (100 * Math.max(0, influence)) / most : 0}%` }}
                  />
                </span>
                <span className="layer-value">
                  <span className="visually-hidden"> block influence </span>
                  {formatReal(influence)}
                </span>
                <span className="layer-fate">{gone.has(layer) ? 'goes' : ''}</span>
              </li>
            ))}
          </ol>
          <p className="small quiet">
            Block influence: how far a layer turns the residual stream, 1 − cosine of its input and output.
            Layers with small values are missed least.
          </p>
        </>
      ) : null}
    </div>
  );
}

/**
 * The layers that would go, as far as that is known without running anything, or why none can; null where it is not
 * known, and where the form shows an error in the settings.
 */
function goingLayers(
  settings: CollapseSettings,
  measured: MeasureLayersReport | null,
): number[] | string | null {
  if (settings.planner === 'laco' || !measured || settingsProblem(settings, measured.layers) !== null)
    return null;
  try {
    return chooseLayers(settings, measured);
  } catch (thrown) {
    return errorReport(thrown).message;
  }
}

const WIDTH = 320;
const HEIGHT = 140;
const PAD = 8;
/** Room for the numbers of the axis. */
const AXIS = 30;

interface SimilarityCurveProps {
  /** Similarity with the block that begins at `layer` collapsed; null where the result is not finite. */
  curve: readonly { layer: number; similarity: number | null }[];
  block: number;
}

/** Which block would be missed least: similarity to the original over the place of the block. */
export function SimilarityCurve({ curve, block }: SimilarityCurveProps) {
  const found = curve.flatMap(({ layer, similarity }) =>
    similarity === null ? [] : [{ layer, similarity }],
  );
  if (found.length === 0) return <p className="small quiet">No block leaves a model with finite numbers.</p>;
  const values = found.map((f) => f.similarity);
  const best = found.reduce((a, b) => (b.similarity > a.similarity ? b : a));
  const [low = 0, high = 1] = scaleLinear()
    .domain([Math.min(...values), Math.max(1, ...values)])
    .nice(4)
    .domain();
  const x = scaleLinear()
    .domain([0, Math.max(1, curve.length - 1)])
    .range([AXIS + PAD, WIDTH - PAD]);
  const y = scaleLinear()
    .domain([low, high])
    .range([HEIGHT - PAD, PAD]);
  const words = curve
    .map(
      ({ layer, similarity }) =>
        `layers ${layer} to ${layer + block - 1} ${similarity === null ? 'not finite' : formatReal(similarity)}`,
    )
    .join(', ');
  return (
    <>
      <svg
        className="similarity"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Similarity to the original with ${counted(block, 'layer')} as one: ${words}`}
      >
        {y.ticks(4).map((tick) => (
          <g key={tick}>
            <line className="plot-grid" x1={AXIS} x2={WIDTH} y1={y(tick)} y2={y(tick)} />
            <text className="plot-tick similarity-tick" x={AXIS - 5} y={y(tick) + 3}>
              {tick}
            </text>
          </g>
        ))}
        <polyline
          className="chart-line"
          stroke="var(--accent)"
          points={found.map((f) => `${x(f.layer)},${y(f.similarity)}`).join(' ')}
        />
        {found.map((f) => (
          <circle
            key={f.layer}
            className="similarity-point"
            data-best={f.layer === best.layer || undefined}
            cx={x(f.layer)}
            cy={y(f.similarity)}
            r={f.layer === best.layer ? 4 : 2.5}
          />
        ))}
      </svg>
      <div className="axis" aria-hidden="true">
        <span>block at layer 0</span>
        <span>{curve.length - 1}</span>
      </div>
      <p className="readout">
        <span>
          best: layers {best.layer} to {best.layer + block - 1} as one
        </span>
        <span>{formatReal(best.similarity)}</span>
      </p>
    </>
  );
}
