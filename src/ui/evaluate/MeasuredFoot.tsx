import { useMemo } from 'react';
import { formatBytes, formatCounted } from '../../formats/quantity';
import { Button } from '../parts/Button';
import { forgetEarlier } from '../state/evaluation';
import type { TableRow } from '../state/evaluation-table';
import { useStudio, useStudioState } from '../studio-context';

/** Under the table: what measuring took, and which numbers are of an earlier visit. */
export function MeasuredFoot({ rows }: { rows: readonly TableRow[] }) {
  const studio = useStudio();
  const cost = useStudioState((s) => s.evaluation.cost);
  const busy = useStudioState((s) => s.evaluation.work !== null);
  const earlier = useMemo(
    () =>
      rows.flatMap(({ cells }) =>
        cells.flatMap((c) => (c.state === 'done' && c.earlier !== null ? [c.earlier] : [])),
      ),
    [rows],
  );
  if (!cost && earlier.length === 0) return null;
  return (
    <div className="row wrap small quiet measured-foot">
      {cost ? (
        <span>
          Measured last: {formatCounted(cost.models, 'model')}, {formatBytes(cost.bytesRead)} of weights read,
          at most {formatBytes(cost.peakBytes)} of memory on the device.
        </span>
      ) : null}
      {earlier.length > 0 ? (
        <span>
          {formatCounted(earlier.length, 'number')} from an earlier visit, the newest of{' '}
          {new Date(Math.max(...earlier)).toLocaleString()}.{' '}
          <Button variant="quiet" why={busy ? 'Measuring.' : null} onClick={() => void forgetEarlier(studio)}>
            Forget them
          </Button>
        </span>
      ) : null}
    </div>
  );
}
