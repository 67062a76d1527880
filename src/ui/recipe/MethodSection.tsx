import { memo, useCallback } from 'react';
import { methods } from '../../merge/methods/index';
import { LinkButton, Tip } from '../parts/Button';
import { choices, NumberField, Select } from '../parts/fields';
import { Problem } from '../parts/Message';
import { PopoverFrame } from '../parts/PopoverFrame';
import { Section } from '../parts/Section';
import { usesSeed } from '../state/built-recipe';
import {
  effectiveSpecs,
  type GradientEnds,
  hasCurve,
  outputCombination,
  type SettingValue,
  setMethod,
  setParameter,
  settingValue,
} from '../state/recipe-state';
import { recipeProblems } from '../state/recipe-validation';
import { editRecipe, methodOf } from '../state/studio';
import { useParts, useStudio, useStudioState } from '../studio-context';
import { ParameterField } from './ParameterField';

/** The merge method: picker, one-line meaning, its parameters. Everything comes from the method's file. */
export function MethodSection() {
  const studio = useStudio();
  const method = useStudioState((s) => methodOf(s.recipe));
  const parameters = useStudioState((s) => s.recipe.parameters);
  const combination = useStudioState((s) => outputCombination(s.recipe, s.models));
  const ends = useStudioState((s) => (hasCurve(s.recipe, methodOf(s.recipe)) ? s.recipe.gradientEnds : null));
  const edit = useCallback(
    (name: string, value: SettingValue) => editRecipe(studio, (r) => setParameter(r, name, value)),
    [studio],
  );
  const specs = effectiveSpecs(method.parameters, parameters, combination);
  // switches and choices are folded while they are as the method has them
  const [shown, folded] = [true, false].map((is) =>
    specs.filter(({ spec }) => (spec.kind === 'number') === is),
  ) as [typeof specs, typeof specs];
  const changed = folded.some(({ name, spec }) => settingValue(parameters, name, spec) !== spec.default);
  const field = ({ name, spec }: (typeof specs)[number]) => (
    <ParameterField
      key={name}
      name={name}
      spec={spec}
      value={settingValue(parameters, name, spec)}
      onEdit={edit}
    />
  );
  return (
    <Section title="Method" className="method" aside={<MethodHelp />}>
      <Select
        aria-label="Merge method"
        title={method.title}
        value={method.id}
        options={methods.map((m) => ({ value: m.id, label: m.title }))}
        onChange={(id) => {
          const next = methods.find((m) => m.id === id);
          if (next) editRecipe(studio, (r) => setMethod(r, methodOf(r), next));
        }}
      />
      <p className="small quiet">{method.summary}</p>
      {shown.map(field)}
      {usesSeed(method, parameters) ? <Seed /> : null}
      {ends ? <CurveEnds ends={ends} /> : null}
      {folded.length > 0 ? (
        <details className="folded" open={changed || undefined}>
          <summary className="small quiet">{folded.map(({ spec }) => spec.label).join(', ')}</summary>
          <div className="stack tight">{folded.map(field)}</div>
        </details>
      ) : null}
    </Section>
  );
}

function Seed() {
  const studio = useStudio();
  const { recipe, models } = useParts('recipe', 'models');
  const problem = recipeProblems(recipe, models, methodOf(recipe)).find((p) => p.place.kind === 'seed');
  return (
    <div className="parameter">
      <span className="parameter-label">seed</span>
      <NumberField
        className="field mono parameter-wide"
        value={recipe.seed}
        min={0}
        max={2 ** 32 - 1}
        label="seed"
        invalid={problem !== undefined}
        onChange={(next) => editRecipe(studio, (r) => ({ ...r, seed: next }))}
      />
      <Problem className="whole">{problem?.remedy}</Problem>
    </div>
  );
}

/** Value of curves for tensors outside the layers: embedding, final norm, head. */
function CurveEnds({ ends }: { ends: GradientEnds }) {
  const studio = useStudio();
  return (
    <div className="parameter">
      <Tip text="Embedding, final norm and head have no layer. At the nearest end the embedding takes a curve’s first point, norm and head its last. mergekit takes the first point for all of them.">
        <span className="parameter-label">outside</span>
      </Tip>
      <Select
        className="select parameter-wide"
        aria-label="Curves outside the layers"
        value={ends}
        options={choices({ nearest: 'nearest end of the curve', mergekit: 'first point, as mergekit' })}
        onChange={(gradientEnds) => editRecipe(studio, (r) => ({ ...r, gradientEnds }))}
      />
    </div>
  );
}

/** What the method is; its parameters say what they are by themselves. */
const MethodHelp = memo(function MethodHelp() {
  const method = useStudioState((s) => methodOf(s.recipe));
  return (
    <PopoverFrame label={`About ${method.title}`} trigger={<LinkButton>what is this?</LinkButton>} beside>
      <h3>{method.title}</h3>
      <p>{method.summary}</p>
      <code className="formula grid small quiet">{method.formula}</code>
      <p className="small quiet">
        W₀ is the base, Wᵢ a contributor, τᵢ = Wᵢ − W₀ its change (its task vector), wᵢ its weight.
      </p>
      {method.tells ? <p className="small quiet">{method.tells.why}</p> : null}
      <a href={method.reference.url} target="_blank" rel="noreferrer">
        {method.reference.label}
      </a>
    </PopoverFrame>
  );
});
