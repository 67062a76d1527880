import { useState } from 'react';
import { type SampledChanges as Sampled, sampledWords } from '../../reports/sampled-changes';
import { LinkButton } from '../parts/Button';
import { buildRecipe } from '../state/built-recipe';
import { methodOf, noticed } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** How the changes of the models lie to each other, by a few rows that are read when it is asked. */
export function SampledChanges() {
  const studio = useStudio();
  const { report, contributors, status } = useStudioState((s) => s.plan);
  const models = JSON.stringify([report?.base, report?.contributors]);
  const [found, setFound] = useState<{ of: string; sampled: Sampled | null } | 'reading' | null>(null);
  if (!report?.clean || status !== 'ready' || report.stages || report.contributors.length < 2) return null;
  const known = found !== null && found !== 'reading' && found.of === models ? found : null;
  const read = () =>
    noticed(studio, async () => {
      setFound('reading');
      const { recipe, models: opened } = studio.store.getState();
      const asked = buildRecipe(recipe, opened, methodOf(recipe));
      const sampled = await studio.worker.sampleChanges(asked).catch((thrown: unknown) => {
        setFound(null);
        throw thrown;
      });
      setFound({ of: models, sampled });
    });
  return (
    <p className="small quiet" role="status">
      {known === null ? (
        <LinkButton
          disabled={found === 'reading'}
          title="Reads a few rows of each model, before anything large is downloaded"
          onClick={() => void read()}
        >
          {found === 'reading' ? 'Reading samples…' : 'How do their changes fit together?'}
        </LinkButton>
      ) : known.sampled ? (
        `${sampledWords(
          known.sampled,
          contributors.map(({ label }) => label),
        )}.`
      ) : (
        'These models cannot be read in part: nothing is known of their changes before a merge.'
      )}
    </p>
  );
}
