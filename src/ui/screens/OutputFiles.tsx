import { namedFiles } from '../../formats/gguf-type';
import { formatCounted } from '../../formats/quantity';
import { SavedFiles } from '../parts/SavedFiles';
import { Section } from '../parts/Section';
import { outputName } from '../state/built-recipe';
import { isRecipeOf } from '../state/recipe-identity';
import { currentRun, type RunState } from '../state/runs';
import { useStudioState } from '../studio-context';

/** The files of the last finished run with size, hash and a download each; before that, the files a merge will write. */
export function OutputFiles() {
  const run = useStudioState(currentRun);
  const plan = useStudioState((s) => s.plan.report?.outputFiles);
  const name = useStudioState((s) => s.output.name ?? outputName(s.recipe));
  const planned = plan && namedFiles(plan, name);
  const isMerged = useStudioState((s) => run !== null && isRecipeOf(run.recipe, s.recipe, s.models));
  const done = run?.status === 'done' ? <Finished key={run.id} run={run} isRecipe={isMerged} /> : null;
  if (isMerged && done) return done;
  return (
    <>
      <Section title="Files to be written">
        {planned ? (
          <ul className="files panel">
            {planned.map((file) => (
              <li key={file}>
                <span className="mono small truncate">{file}</span>
              </li>
            ))}
          </ul>
        ) : (
          <p className="quiet">Known once the plan is ready.</p>
        )}
      </Section>
      {done}
    </>
  );
}

/** @param isRecipe it is the merge of the current recipe */
function Finished({ run, isRecipe }: { run: RunState; isRecipe: boolean }) {
  const { destination, report, outputFiles } = run;
  const shards = new Map((report?.shards ?? []).map((s) => [s.file, s]));
  const files = [...new Set([...shards.keys(), ...outputFiles])].map((name) => ({
    name,
    ...shards.get(name),
  }));
  return (
    <Section
      title={isRecipe ? 'Files' : 'Files of the last merge'}
      aside={<span className="small quiet">{formatCounted(files.length, 'file')}</span>}
    >
      {isRecipe ? null : <p className="small quiet">The recipe has been changed since.</p>}
      <SavedFiles saved={{ ...destination, files }} old={run.again === true}>
        <span>
          {run.title} · {run.methodTitle}
        </span>
        <br />
      </SavedFiles>
    </Section>
  );
}
