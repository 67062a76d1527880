import { useEffect } from 'react';
import { TextChoice } from '../evaluate/TextChoice';
import { OneModel } from '../parts/ModelSelect';
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
      <OneModel
        label="Model to prune"
        value={model}
        onChange={(ref) => editCollapse(studio, { model: ref, manual: [] })}
      >
        Whole layers are dropped, or folded into the layer before them. Nothing is trained; the loss of
        quality is measured on a text of yours.
      </OneModel>
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
