import { Segmented } from '../parts/Segmented';
import { useStudio, useStudioState } from '../studio-context';
import { editCollapse } from './collapsing';
import { DistanceMap } from './DistanceMap';
import { collapseModel } from './planning';
import { SimilarityCurve } from './SimilarityCurve';

/** What measuring gave beside the influences: how far the stream turns between any two depths, and the curve. */
export function DepthCharts() {
  const studio = useStudio();
  const { survey, tokens } = useStudioState((s) => s.collapse);
  const model = useStudioState(collapseModel);
  const report = survey?.model === model ? survey.report : null;
  if (!report) return null;
  const { distance, curve } = report;
  return (
    <div className="depth-charts">
      <figure className="chart">
        <figcaption>
          <strong>Angular distance</strong>
          <span className="spacer" />
          <Segmented<'last' | 'all'>
            label="Tokens of the map"
            value={tokens}
            options={[
              { value: 'last', label: 'Last tokens' },
              { value: 'all', label: 'All' },
            ]}
            onChange={(next) => editCollapse(studio, { tokens: next })}
          />
        </figcaption>
        <DistanceMap distance={tokens === 'all' ? distance.allTokens : distance.lastToken} />
      </figure>
      {curve && curve.length > 0 ? (
        <figure className="chart">
          <figcaption>
            <strong>Remaining similarity</strong>
            <span className="spacer" />
            <span className="small quiet">one block collapsed</span>
          </figcaption>
          <SimilarityCurve curve={curve} block={report.layers - curve.length + 1} />
        </figure>
      ) : null}
    </div>
  );
}
