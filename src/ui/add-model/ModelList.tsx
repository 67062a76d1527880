import type { ModelInfo } from '../../reports/models';
import { Button } from '../parts/Button';
import { ModelMeta } from '../parts/ModelMeta';
import { lineage } from '../state/lineage';
import { takeModel, whyNotAdd } from '../state/models';
import type { AddTarget } from '../state/studio-state';
import { useStudio, useStudioState } from '../studio-context';

interface ModelListProps {
  label: string;
  models: readonly ModelInfo[];
  target: AddTarget;
  /** Called once a base is chosen; contributors can be added one after the other. */
  onDone(): void;
}

/** Opened models, each with what it is and a button to take it. */
export function ModelList({ label, models, target, onDone }: ModelListProps) {
  const studio = useStudio();
  const recipe = useStudioState((s) => s.recipe);
  const base = useStudioState((s) => s.models.find((m) => m.ref === s.recipe.base));
  return (
    <ul className="models panel" aria-label={label}>
      {models.map((model) => {
        const why = whyNotAdd(recipe, model, target);
        const verb =
          target === 'library'
            ? 'Opened'
            : recipe.base === model.ref
              ? 'Base'
              : target === 'base'
                ? 'Use as base'
                : why
                  ? 'Added'
                  : 'Add';
        const badge = target === 'contributor' && model.ref !== base?.ref ? lineage(model, base) : null;
        return (
          <li key={model.ref} className="model row">
            <div className="grow">
              <span className="row wrap">
                <strong className="truncate" title={model.ref}>
                  {model.ref}
                </strong>
                {badge ? (
                  <span className="tag" data-tone={badge.tone} title={badge.why}>
                    {badge.text}
                  </span>
                ) : null}
              </span>
              <ModelMeta model={model} />
            </div>
            <Button
              why={why}
              aria-label={`${verb}: ${model.title}`}
              onClick={() => {
                takeModel(studio, model.ref, target);
                if (target === 'base') onDone();
              }}
            >
              {verb}
            </Button>
          </li>
        );
      })}
    </ul>
  );
}
