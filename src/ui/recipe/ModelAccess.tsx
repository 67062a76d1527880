import { lazy, Suspense } from 'react';
import { useShallow } from 'zustand/react/shallow';
import { formatBytes } from '../../formats/quantity';
import { repositoriesOf } from '../../formats/recipe';
import { Button } from '../parts/Button';
import { useAttempt } from '../parts/hooks';
import { isSameModel, originOf } from '../state/model-origins';
import { closedFolders, reopenFolders } from '../state/named-models';
import { editRecipe } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

const UnopenedModel = lazy(() => import('./UnopenedModel').then((m) => ({ default: m.UnopenedModel })));

/** Several folders of before, opened by one click. */
export function OpenAllAgain() {
  const studio = useStudio();
  const several = useStudioState((s) => closedFolders(s).length > 1);
  const { working, attempt } = useAttempt();
  if (working) {
    return (
      <p className="small" role="status">
        Opening the folders. If your browser asks for permission, allow it.
      </p>
    );
  }
  if (!several) return null;
  return (
    <div className="row">
      <Button className="strong" onClick={() => void attempt('open', () => reopenFolders(studio))}>
        Open all again
      </Button>
    </div>
  );
}

/** Of the models that a reference (`model`, `model+adapter`) names, those that are not open or not the same as before. */
export function ModelAccess({ of, titled = false }: { of: string; titled?: boolean }) {
  const open = useStudioState(useShallow((s) => s.models.map((m) => m.ref)));
  const names = repositoriesOf(of);
  return names.map((name) =>
    open.includes(name) ? (
      <ChangedModel key={name} name={name} />
    ) : (
      <Suspense key={name}>
        <UnopenedModel name={name} titled={titled || names.length > 1} />
      </Suspense>
    ),
  );
}

/** A folder of the same name with other tensors than the recipe was made with. */
function ChangedModel({ name }: { name: string }) {
  const studio = useStudio();
  const model = useStudioState((s) => s.models.find((m) => m.ref === name));
  const origin = useStudioState((s) => s.recipe.origins[name]);
  if (!model || origin?.kind !== 'local' || !origin.was || isSameModel(origin, model)) return null;
  const { bytes } = origin.was;
  return (
    <div className="stack">
      <p className="small toned" data-tone="warn" role="status">
        Not the folder this recipe was made with:{' '}
        {bytes === model.bytes
          ? 'its tensors differ.'
          : `${formatBytes(bytes)} then, ${formatBytes(model.bytes)} now.`}
      </p>
      <div className="row wrap">
        <Button
          onClick={() =>
            editRecipe(studio, (r) => ({ ...r, origins: { ...r.origins, [name]: originOf(model) } }))
          }
        >
          Use this one
        </Button>
      </div>
    </div>
  );
}
