import { formatCount } from '../../formats/quantity';
import { Button } from '../parts/Button';
import { LabelledNumber } from '../parts/LabelledNumber';
import { ToolEnd } from '../parts/ToolEnd';
import { QUICK_CHARACTERS } from '../state/evaluation-texts';
import { useStudio, useStudioState } from '../studio-context';
import { editCollapse, surveyLayers, whyNotSurveyed } from './collapsing';
import { collapseModel } from './planning';

/** How the model is run over the texts, and the button. */
export function SurveyForm() {
  const studio = useStudio();
  const { window, curveBlock, survey } = useStudioState((s) => s.collapse);
  const amount = useStudioState((s) => s.evaluation.amount);
  const model = useStudioState(collapseModel);
  const why = useStudioState(whyNotSurveyed);
  const own = survey?.model === model ? survey : null;
  return (
    <>
      <div className="row wrap tool-fields">
        <Button className="strong" why={why} onClick={() => void surveyLayers(studio)}>
          Measure layers
        </Button>
        <LabelledNumber
          label="window"
          name="window in tokens"
          value={window}
          min={2}
          max={131_072}
          onChange={(next) => editCollapse(studio, { window: next })}
        />
        <LabelledNumber
          label="curve for blocks of"
          name="layers of the block whose similarity curve is measured, 0 for no curve"
          value={curveBlock}
          min={0}
          max={64}
          onChange={(next) => editCollapse(studio, { curveBlock: next })}
        />
        <p className="small quiet tool-words">
          {amount === 'quick'
            ? `The first ${formatCount(QUICK_CHARACTERS)} characters of each text are run through all layers. `
            : 'Full texts are run through all layers. '}
          Use a text of the kind that the model is for.
        </p>
      </div>
      {own ? <ToolEnd run={own} stopped="Stopped. Nothing was measured." /> : null}
    </>
  );
}
