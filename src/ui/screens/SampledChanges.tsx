import { useState } from 'react';
import { type SampledChanges as Sampled, sampledWords } from '../../reports/sampled-changes';
import { LinkButton } from '../parts/Button';
import { useAttempt } from '../parts/hooks';
import { ErrorCard } from '../parts/Message';
import { buildRecipe } from '../state/built-recipe';
import { methodOf } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** How the changes of the models lie to each other, by a few rows that are read when it is asked. */
export function SampledChanges() {
  const studio = useStudio();
  const { report, contributors, status } = useStudioState((s) => s.plan);
  const models = JSON.stringify([report?.base, report?.contributors]);
  const [found, setFound] = useState<{ of: string; sampled: Sampled | null } | null>(null);
  const { working, error, attempt, cancel } = useAttempt();
  if (!report?.clean || status !== 'ready' || report.stages || report.contributors.length < 2) return null;
  const known = found?.of === models ? found : null;
  const read = () =>
    attempt('read', async (signal) => {
      const { recipe, models: opened } = studio.store.getState();
      const asked = buildRecipe(recipe, opened, methodOf(recipe));
      setFound({ of: models, sampled: await studio.worker.sampleChanges(asked, signal) });
    });
  return (
    <div className="small quiet" role="status">
      {error ? <ErrorCard error={error} /> : null}
      {known === null ? (
        <LinkButton
          title="Reads a few rows of each model, before anything large is downloaded"
          onClick={() => (working ? cancel() : void read())}
        >
          {working ? 'Reading samples… Cancel' : 'How do their changes fit together?'}
        </LinkButton>
      ) : known.sampled ? (
        `${sampledWords(
          known.sampled,
          contributors.map(({ label }) => label),
        )}.`
      ) : (
        'These models cannot be read in part: nothing is known of their changes before a merge.'
      )}
    </div>
  );
}
