/** The layers of a model in pictures: what each does, which go, and what is left without a block. */
import { useMemo } from 'react';
import { errorReport } from '../../errors';
import { counted, formatCounted, formatReal } from '../../formats/quantity';
import { LinePlot } from '../../ui/charts/LinePlot';
import { chooseLayers, layerWords } from './choose-layers';
import type { CollapseSettings } from './options';
import type { MeasureLayersReport } from './report';

interface LayerMapProps {
  settings: CollapseSettings;
  /** Why the settings cannot be meant, which the form shows. */
  problem: string | null;
  measured: MeasureLayersReport | null;
  /** null where it is not known. */
  layers: number | null;
}

/** Every layer with its block influence as a bar, and whether it goes. */
export function LayerMap({ settings, problem, measured, layers }: LayerMapProps) {
  const known = problem === null ? measured : null;
  const going = useMemo(() => goingLayers(settings, known), [settings, known]);
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
            {going.length === 1 ? 'goes' : 'go'}; of {formatCounted(layers, 'layer')}, counted from 0 as in
            the tensors’ names, {layers - going.length} stay.
          </>
        )}
      </p>
      {measured ? (
        <>
          <ol className="layer-map" aria-label="Layers">
            {measured.influence.map((influence, layer) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a layer is its index.
              <li key={layer} className="layer-row small" data-goes={gone.has(layer) || undefined}>
                <span className="numeric quiet">
                  <span className="visually-hidden">layer </span>
                  {layer}
                </span>
                <span className="bar">
                  <span
                    className="bar-fill"
                    style={{ width: `${most > 0 ? (100 * Math.max(0, influence)) / most : 0}%` }}
                  />
                </span>
                <span className="numeric">
                  <span className="visually-hidden"> block influence </span>
                  {formatReal(influence)}
                </span>
                <span className="strong">{gone.has(layer) ? 'goes' : ''}</span>
              </li>
            ))}
          </ol>
          <p className="small quiet">
            Block influence: how far a layer turns the residual stream, 1 − cosine of its input and output,
            the mean over {formatCounted(measured.calibration.tokens, 'token')}. Layers with small values are
            missed least.
          </p>
        </>
      ) : null}
    </div>
  );
}

/**
 * The layers that would go, as far as that is known without running anything, or why none can; null where it is not
 * known.
 */
function goingLayers(
  settings: CollapseSettings,
  measured: MeasureLayersReport | null,
): number[] | string | null {
  if (settings.planner === 'laco' || !measured) return null;
  try {
    return chooseLayers(settings, measured);
  } catch (thrown) {
    return errorReport(thrown).message;
  }
}

interface SimilarityCurveProps {
  /** Similarity with the block that begins at `layer` collapsed; null where the result is not finite. */
  curve: readonly { layer: number; similarity: number | null }[];
  block: number;
}

/** Which block would be missed least: similarity to the original over the place of the block. */
export function SimilarityCurve({ curve, block }: SimilarityCurveProps) {
  const words = (layer: number, similarity: number | null) =>
    `layers ${layer} to ${layer + block - 1} ${similarity === null ? 'not finite' : formatReal(similarity)}`;
  const points = curve.flatMap(({ layer, similarity }) =>
    similarity === null ? [] : [{ x: layer, y: similarity, words: words(layer, similarity) }],
  );
  if (points.length === 0) return <p className="small quiet">No block leaves a model with finite numbers.</p>;
  const values = points.map((at) => at.y);
  const best = points.reduce((a, b) => (b.y > a.y ? b : a));
  const all = curve.map(({ layer, similarity }) => words(layer, similarity)).join(', ');
  return (
    <figure className="similarity-chart">
      <LinePlot
        {...{ width: 320, height: 160, left: 38, points, best }}
        along={[0, Math.max(1, curve.length - 1)]}
        upward={[Math.min(...values), Math.max(1, ...values)]}
        title="first layer of the block"
        label={`Similarity to the original with ${counted(block, 'layer')} as one: ${all}`}
      />
      <figcaption className="small quiet">
        Similarity left with one block collapsed; highest: {best.words}
      </figcaption>
    </figure>
  );
}
