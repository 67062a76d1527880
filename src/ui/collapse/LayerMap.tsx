import { useMemo } from 'react';
import { formatReal } from '../../formats/quantity';
import { useStudio, useStudioState } from '../studio-context';
import { toggleLayer } from './collapsing';
import { collapseModel, goingLayers, layersOf, layerWords } from './planning';

/** Every layer with its block influence as a bar and whether it goes; pressing one chooses by hand. */
export function LayerMap() {
  const studio = useStudio();
  const slice = useStudioState((s) => s.collapse);
  const model = useStudioState(collapseModel);
  const known = useStudioState((s) => layersOf(s.models, collapseModel(s)));
  const survey = slice.survey?.model === model ? slice.survey.report : null;
  const going = useMemo(() => goingLayers(slice, survey), [slice, survey]);
  const layers = survey?.layers ?? known;
  if (layers === null) {
    return <p className="small quiet">The number of layers is known once the model is measured.</p>;
  }
  const gone = new Set(going && 'layers' in going ? going.layers : []);
  const most = Math.max(...(survey?.influence ?? [0]));
  return (
    <div className="stack">
      <p className="small" role="status">
        {going === null ? (
          <span className="quiet">
            {slice.planner === 'laco'
              ? 'Which layers are removed is found by trying. Press a layer to choose by hand instead.'
              : 'Measure the layers to see which would be removed, or press layers to choose by hand.'}
          </span>
        ) : 'why' in going ? (
          <span className="tone-bad">{going.why}</span>
        ) : going.layers.length === 0 ? (
          <span className="quiet">
            {slice.planner === 'manual'
              ? 'No layer is chosen yet.'
              : 'No layer is within the threshold, so there is nothing to do.'}
          </span>
        ) : (
          <>
            <strong>
              {going.layers.length === 1 ? 'Layer' : 'Layers'} {layerWords(going.layers)}
            </strong>{' '}
            of {layers} {going.layers.length === 1 ? 'goes' : 'go'}, {layers - going.layers.length} stay.
          </>
        )}
      </p>
      <fieldset className="layer-map">
        <legend className="visually-hidden">Layers to remove</legend>
        {Array.from({ length: layers }, (_, layer) => {
          const influence = survey?.influence[layer];
          const goes = gone.has(layer);
          return (
            <button
              // biome-ignore lint/suspicious/noArrayIndexKey: a layer is its index.
              key={layer}
              type="button"
              className="layer-row"
              aria-pressed={goes}
              onClick={() => toggleLayer(studio, layer)}
            >
              <span className="layer-number">
                <span className="visually-hidden">layer </span>
                {layer}
              </span>
              <span className="layer-track">
                {influence === undefined ? null : (
                  <span
                    className="bar-fill"
                    style={{ width: `${most > 0 ? (100 * Math.max(0, influence)) / most : 0}%` }}
                  />
                )}
              </span>
              <span className="layer-value">
                <span className="visually-hidden">
                  {influence === undefined ? ' not measured' : ' block influence '}
                </span>
                {influence === undefined ? '' : formatReal(influence)}
              </span>
              <span className="layer-fate">
                <span className="visually-hidden">{goes ? ' ' : ' stays'}</span>
                {goes ? 'goes' : ''}
              </span>
            </button>
          );
        })}
      </fieldset>
      {survey ? (
        <p className="small quiet">
          Block influence: how far a layer turns the residual stream, 1 − cosine of its input and output.
          Layers with small values are missed least.
        </p>
      ) : null}
    </div>
  );
}
