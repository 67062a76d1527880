import '../../ui/styles/tools.css';
import { optionsProblem } from '../../reports/option';
import { Button } from '../../ui/parts/Button';
import { Problem, ToolEnd } from '../../ui/parts/Message';
import { OneModel } from '../../ui/parts/ModelSelect';
import { ToolForm } from '../../ui/parts/OptionsForm';
import { SavedFiles, SaveTo } from '../../ui/parts/SavedFiles';
import { Section, Sentences } from '../../ui/parts/Section';
import { ToolBar, ToolHead } from '../../ui/parts/ToolBar';
import { whyNoTool } from '../../ui/state/job';
import { choiceName, chosenModel, fileNameOf } from '../../ui/state/roles';
import { beginTool, chooseToolModels, whyNotSaved } from '../../ui/state/tool-jobs';
import { useStudio, useStudioState } from '../../ui/studio-context';
import { convertOptions } from './options';

/** One model in another dtype, as GGUF, or in shards of another size. */
export function Screen() {
  const studio = useStudio();
  const model = useStudioState((s) => chosenModel(s, s.tools.models.model));
  const form = useStudioState((s) => s.tools.values.convert);
  const busy = useStudioState(whyNoTool);
  const unsaved = useStudioState(whyNotSaved);
  const job = useStudioState((s) => s.tools.jobs.convert);
  const problem = optionsProblem(convertOptions, form);
  // a file for llama.cpp has its type in its name
  const kind = form.gguf !== 'none' ? [] : form.dtype === 'same' ? ['copy'] : [form.dtype];
  const name = model && fileNameOf(model, ...kind);
  const convert = () => {
    if (model !== null) void beginTool(studio, 'convert', { model, form }, name!);
  };
  return (
    <div className="stack roomy screen tool-screen">
      <OneModel
        label="Model to convert"
        value={model}
        onChange={(ref) => chooseToolModels(studio, { model: ref })}
      >
        It is written again in another form; nothing is merged. An adapter on its base becomes one model.
      </OneModel>
      <div className="stack loose">
        <ToolForm tool="convert" />
        <Problem>{problem}</Problem>
        <div className="row wrap apart">
          <Button
            variant="primary"
            why={busy ?? (model === null ? 'Open a model first.' : null) ?? problem ?? unsaved}
            onClick={convert}
          >
            Convert
          </Button>
          <SaveTo name={name} />
        </div>
      </div>
      <ToolBar kinds={['convert']} />
      {job ? (
        <>
          <ToolHead title={choiceName(job.request.model)} report={job.report} />
          <ToolEnd run={job} stopped="Stopped. Nothing was saved." />
          {job.report ? <Sentences words={job.report.notes} /> : null}
          {job.saved ? (
            <Section title="Files">
              <SavedFiles saved={job.saved} />
            </Section>
          ) : null}
        </>
      ) : (
        <p className="quiet" role="status">
          Nothing converted yet.
        </p>
      )}
    </div>
  );
}
