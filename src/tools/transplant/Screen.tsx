import '../../ui/styles/measure.css';
import '../../ui/styles/tools.css';
import { useEffect } from 'react';
import { formatBytes, formatCount, formatCounted, formatSeconds } from '../../formats/quantity';
import { optionsProblem } from '../../reports/option';
import { scoredText } from '../../reports/text-parts';
import { TextChoice } from '../../ui/measure/TextChoice';
import { Button } from '../../ui/parts/Button';
import { Problem, ToolEnd } from '../../ui/parts/Message';
import { ModelSelect, OneModel } from '../../ui/parts/ModelSelect';
import { ToolForm } from '../../ui/parts/OptionsForm';
import { SavedFiles, SaveTo } from '../../ui/parts/SavedFiles';
import { Costs, Section, Sentences } from '../../ui/parts/Section';
import { ToolBar, ToolHead } from '../../ui/parts/ToolBar';
import { whyNoTool } from '../../ui/state/job';
import { openSampleTexts } from '../../ui/state/measure-texts';
import { choiceName, chosenModel, fileNameOf } from '../../ui/state/roles';
import { beginTool, chooseToolModels, whyNotSaved } from '../../ui/state/tool-jobs';
import { useStudio, useStudioState } from '../../ui/studio-context';
import { transplantOptions } from './options';
import { qualityWords, type TransplantPlan, type TransplantReport } from './report';

/** One model with the tokenizer of another. */
export function Screen() {
  const studio = useStudio();
  const model = useStudioState((s) => chosenModel(s, s.tools.models.model));
  const donor = useStudioState((s) => s.tools.models.donor);
  const form = useStudioState((s) => s.tools.values.transplant);
  const texts = useStudioState((s) => s.measure.texts);
  const amount = useStudioState((s) => s.measure.amount);
  const busy = useStudioState(whyNoTool);
  const unsaved = useStudioState(whyNotSaved);
  const planned = useStudioState((s) => s.tools.jobs.planTransplant);
  const job = useStudioState((s) => s.tools.jobs.transplant);
  useEffect(() => {
    void openSampleTexts(studio);
  }, [studio]);
  const problem = optionsProblem(transplantOptions, form);
  const missing = model === null ? 'Open a model first.' : null;
  const why = busy ?? missing ?? (donor === null ? 'Choose the model whose tokenizer it gets.' : problem);
  const plan = () => {
    if (model !== null && donor !== null) void beginTool(studio, 'planTransplant', { model, donor, form });
  };
  const begin = () => {
    if (model === null || donor === null) return;
    const chosen = texts.filter((t) => t.chosen).map((t) => scoredText(t.text, amount));
    void beginTool(
      studio,
      'transplant',
      { model, donor, form, texts: chosen },
      fileNameOf(model, 'transplanted'),
    );
  };
  return (
    <div className="stack roomy screen tool-screen">
      <OneModel
        label="Model that gets another tokenizer"
        value={model}
        onChange={(ref) => chooseToolModels(studio, { model: ref })}
      >
        Rows of tokens that both tokenizers have are taken over; rows of new ones are made of others. Nothing
        is trained.
      </OneModel>
      <div className="stack tool-model">
        <span className="label" aria-hidden="true">
          Model whose tokenizer it gets
        </span>
        <ModelSelect
          label="Model whose tokenizer it gets"
          value={donor}
          onChange={(ref) => chooseToolModels(studio, { donor: ref })}
        />
      </div>
      <div className="stack loose">
        <ToolForm tool="transplant" />
        <Problem>{problem}</Problem>
      </div>
      <Section title="Measured on, before and after">
        <TextChoice />
      </Section>
      <div className="row wrap apart">
        <Button why={why} onClick={plan}>
          Plan
        </Button>
        <Button variant="primary" why={why ?? unsaved} onClick={begin}>
          Transplant
        </Button>
        <SaveTo name={model && fileNameOf(model, 'transplanted')} />
      </div>
      <ToolBar kinds={['planTransplant', 'transplant']} />
      {planned ? <ToolEnd run={planned} stopped="Stopped." /> : null}
      {planned?.report ? <Found found={planned.report} /> : null}
      {job ? (
        <>
          <ToolEnd run={job} stopped="Stopped. Nothing was saved." />
          {job.report ? <Found found={job.report} /> : null}
          {job.saved ? <SavedFiles saved={job.saved} /> : null}
        </>
      ) : (
        <p className="quiet" role="status">
          No tokenizer transplanted yet.
        </p>
      )}
    </div>
  );
}

/** What a plan says, or what was done. */
function Found({ found }: { found: TransplantPlan | TransplantReport }) {
  const { model, donor, tokens, rows, peakBytes, notes } = found;
  const quality = 'quality' in found ? found.quality : null;
  const title = `${choiceName(model)} with the tokenizer of ${choiceName(donor)}`;
  return (
    <>
      {'engine' in found ? (
        <ToolHead title={title} report={found} />
      ) : (
        <p className="label">{title}: the plan</p>
      )}
      <Costs
        items={[
          ['Tokens taken over', formatCount(tokens.shared), `${formatCount(tokens.special)} special`],
          [
            'New tokens',
            formatCount(tokens.new),
            `${formatCount(rows.before)} → ${formatCounted(rows.after, 'row')}`,
          ],
          'fitSeconds' in found
            ? ['Rows made in', formatSeconds(found.fitSeconds), 'without reading and writing']
            : ['Time for the rows', formatSeconds(found.seconds), `${formatBytes(peakBytes)} of memory`],
          quality
            ? [
                'Bits per byte',
                `${quality.before.bitsPerByte.toFixed(3)} → ${quality.after.bitsPerByte.toFixed(3)}`,
                'on the chosen texts',
              ]
            : ['Bits per byte', '–', 'not measured'],
        ]}
      />
      {quality ? (
        <p className="small quiet">
          {qualityWords(quality.before)} before, {qualityWords(quality.after)} after.
        </p>
      ) : null}
      <Sentences words={notes} />
    </>
  );
}
