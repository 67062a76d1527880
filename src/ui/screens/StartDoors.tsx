import { FolderButton } from '../local/FolderButton';
import { remember } from '../local/remembered-choices';
import { Button } from '../parts/Button';
import { SearchIcon } from '../parts/icons';
import { addFiles } from '../state/models';
import { openSampleFamily } from '../state/named-models';
import { isUntouched } from '../state/roles';
import { startMerge } from '../state/run';
import { currentRun } from '../state/runs';
import { notifyError, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import '../styles/start-doors.css';

/** What this is, and the three ways in; gone once a recipe is begun, or the sample was merged. */
export function StartDoors() {
  const studio = useStudio();
  const empty = useStudioState((s) => s.recipe.base === null && s.recipe.contributors.length === 0);
  const untouched = useStudioState((s) => currentRun(s) === null && isUntouched(s.recipe, s.models));
  if (!empty && !untouched) return null;
  return (
    <section className="start-doors" aria-label="Start here">
      <p>
        <strong>Merge language models and LoRAs into one, in this browser.</strong>{' '}
        <span className="quiet">They stay on this computer; nothing is uploaded.</span>
      </p>
      <ul>
        <li>
          <FolderButton
            label="Folder with models"
            onPick={(pick) =>
              void pick().then(
                (picked) => picked && addFiles(studio, picked),
                (thrown: unknown) => notifyError(studio, thrown),
              )
            }
          >
            Open models or LoRAs…
          </FolderButton>
          <span className="small quiet">or drop folders on this page</span>
        </li>
        <li>
          <Button
            onClick={() => {
              remember('models-from', 'hub');
              setView(studio, { adding: 'base' });
            }}
          >
            <SearchIcon />
            Search the Hub
          </Button>
          <span className="small quiet">a base, then adapters made for it</span>
        </li>
        <li>
          {empty ? (
            <Button onClick={() => void openSampleFamily(studio, true)}>Try the sample</Button>
          ) : (
            <Button onClick={() => void startMerge(studio)}>Merge the sample</Button>
          )}
          <span className="small quiet">
            a very small family, {empty ? 'to try things out' : 'loaded already'}
          </span>
        </li>
      </ul>
    </section>
  );
}
