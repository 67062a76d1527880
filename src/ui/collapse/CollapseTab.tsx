import { useEffect } from 'react';
import { ModelSelect, OpenModels } from '../compare/ModelSelect';
import { TextChoice } from '../evaluate/TextChoice';
import { Section } from '../parts/Section';
import { ToolBar } from '../parts/ToolBar';
import { openSampleTexts } from '../state/evaluation';
import { useStudio, useStudioState } from '../studio-context';
import '../styles/evaluate.css';
import '../styles/tools.css';
import '../styles/collapse.css';
import { CollapseForm } from './CollapseForm';
import { CollapseResult } from './CollapseResult';
import { editCollapse } from './collapsing';
import { DepthCharts } from './DepthCharts';
import { LayerMap } from './LayerMap';
import { collapseModel } from './planning';
import { SurveyForm } from './SurveyForm';

/** One model made shallower: look at its layers, choose which go, write what is left. */
export function CollapseTab() {
  const studio = useStudio();
  const model = useStudioState(collapseModel);
  useEffect(() => {
    void openSampleTexts(studio);
  }, [studio]);
  return (
    <div className="screen tool-screen">
      <div className="collapse-model">
        <span className="pair-label" aria-hidden="true">
          Model to prune
        </span>
        <div className="row wrap tool-actions">
          <ModelSelect
            label="Model to prune"
            value={model}
            onChange={(ref) => editCollapse(studio, { model: ref, manual: [] })}
          />
          <OpenModels />
        </div>
        <p className="small quiet">
          Whole layers are dropped, or folded into the layer before them. Nothing is trained; the loss of
          quality is measured on a text of yours.
        </p>
      </div>
      <Section title="1 · Look at the layers" className="evaluate-section">
        <TextChoice />
        <SurveyForm />
        <ToolBar kinds={['survey']} />
      </Section>
      <Section title="2 · Choose which to remove" className="evaluate-section">
        <CollapseForm />
        <LayerMap />
        <DepthCharts />
      </Section>
      <CollapseResult />
    </div>
  );
}
