import { Button } from '../parts/Button';
import { whyBusy } from '../state/job';
import { whyNotOpen } from '../state/named-models';
import { startRecommended } from '../state/run';
import { useStudio, useStudioState } from '../studio-context';

/** One button for those who want a good merge and no choices: it compares methods and merges the best. */
export function RecommendedSettings() {
  const studio = useStudio();
  const based = useStudioState((s) => s.recipe.base !== null);
  const contributes = useStudioState((s) => s.recipe.contributors.some((c) => c.enabled));
  const busy = useStudioState((s) => whyBusy(s)?.why ?? null);
  const closed = useStudioState((s) => whyNotOpen(s)?.why ?? null);
  const missing = !based ? 'Choose a base first.' : !contributes ? 'Add a model first.' : null;
  return (
    <div className="stack">
      <Button
        why={missing ?? closed ?? busy}
        tip="Starts a merge: every model generates calibration text, four methods are compared with λ tuned for each, and the best is merged and compared with the base and the contributors. If you stop it, it can continue where it was."
        onClick={() => void startRecommended(studio)}
      >
        Merge with recommended settings
      </Button>
    </div>
  );
}
