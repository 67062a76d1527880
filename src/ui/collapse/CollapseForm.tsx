import type { CollapseParts, CollapseVariant } from '../../reports/collapse';
import { Button } from '../parts/Button';
import { LabelledNumber } from '../parts/LabelledNumber';
import { Problem } from '../parts/Problem';
import { SaveTo } from '../parts/SaveTo';
import { Segmented } from '../parts/Segmented';
import { Select } from '../parts/Select';
import { Toggle } from '../parts/Toggle';
import { fileName } from '../state/saved-output';
import { useStudio, useStudioState } from '../studio-context';
import type { CollapseSlice, LacoChoices, PlannerKind } from './collapse-state';
import { collapseLayers, collapseName, editCollapse, whyNotCollapsed } from './collapsing';
import { choicesProblem, collapseModel, layersOf, variantOf } from './planning';

const PLANNERS: readonly { value: PlannerKind; label: string; words: string }[] = [
  {
    value: 'influence',
    label: 'Least influence',
    words: 'ShortGPT: the layers that turn the residual stream least, wherever they are.',
  },
  {
    value: 'angular',
    label: 'Most similar block',
    words: 'Angular distance: the consecutive layers over which the residual stream turns least.',
  },
  {
    value: 'laco',
    label: 'Greedy search',
    words:
      'LaCo: from the top down, blocks become one layer as long as the shallower model, when run, stays similar.',
  },
  { value: 'manual', label: 'By hand', words: 'Press layers on the map below.' },
];

const VARIANTS: readonly { value: CollapseVariant; label: string }[] = [
  { value: 'drop', label: 'dropped' },
  { value: 'rdsc', label: 'their differences are added (rdsc)' },
  { value: 'replace-last', label: 'the last one takes their place' },
  { value: 'mean', label: 'the mean of the block' },
];

const PARTS: readonly { value: CollapseParts; label: string }[] = [
  { value: 'linear', label: 'linear layers, norms stay' },
  { value: 'full', label: 'everything' },
  { value: 'attention', label: 'attention only' },
  { value: 'mlp', label: 'MLP only' },
];

/** Planner, target, variant, scope. */
export function CollapseForm() {
  const studio = useStudio();
  const slice = useStudioState((s) => s.collapse);
  const layers = useStudioState((s) => layersOf(s.models, collapseModel(s)));
  const problem = choicesProblem(slice, layers);
  const variant = variantOf(slice);
  return (
    <div className="tool-form">
      <div className="row wrap tool-fields">
        <div className="scroll-x">
          <Segmented<PlannerKind>
            label="How layers are chosen"
            value={slice.planner}
            options={PLANNERS}
            onChange={(planner) =>
              editCollapse(studio, {
                planner,
                ...(planner === 'laco' && slice.targetBy === 'threshold' ? { targetBy: 'remove' } : {}),
              })
            }
          />
        </div>
        <p className="small quiet tool-words">{PLANNERS.find((p) => p.value === slice.planner)?.words}</p>
      </div>
      {slice.planner === 'laco' ? <LacoFields laco={slice.laco} layers={layers} /> : null}
      {slice.planner === 'manual' || (slice.planner === 'laco' && !slice.laco.stops) ? null : (
        <TargetFields slice={slice} layers={layers} />
      )}
      <Problem>{problem}</Problem>
      <div className="tool-grid collapse-choices">
        <div className="tool-labelled">
          <span aria-hidden="true">Replace with</span>
          <Select
            aria-label="What happens to the removed layers"
            value={variant}
            options={VARIANTS}
            onChange={(next) => editCollapse(studio, { variant: next })}
          />
        </div>
        <div className="tool-labelled">
          <span aria-hidden="true">Scope</span>
          <Select
            aria-label="Scope: which tensors take part"
            aria-describedby={variant === 'drop' ? 'collapse-scope' : undefined}
            disabled={variant === 'drop'}
            value={slice.parts}
            options={PARTS}
            onChange={(parts) => editCollapse(studio, { parts })}
          />
        </div>
        {variant === 'drop' ? (
          <p id="collapse-scope" className="small quiet tool-across">
            Dropped layers are not folded into others, so the scope has no effect.
          </p>
        ) : null}
      </div>
    </div>
  );
}

/** Where the shallower model goes, and the button. */
export function CollapseButton() {
  const studio = useStudio();
  const { perplexity, name } = useStudioState((s) => s.collapse);
  const model = useStudioState(collapseModel);
  const hasTexts = useStudioState((s) => s.evaluation.texts.some((t) => t.chosen));
  const why = useStudioState(whyNotCollapsed);
  return (
    <div className="tool-form">
      <div className="row wrap tool-actions">
        <Button className="strong" why={why} onClick={() => void collapseLayers(studio)}>
          Collapse
        </Button>
        <Toggle
          label="Perplexity before and after"
          title="Runs the original and the shallower model over the chosen texts."
          why={hasTexts ? null : 'No text is chosen to measure it on.'}
          checked={perplexity}
          onChange={(next) => editCollapse(studio, { perplexity: next })}
        />
      </div>
      <div className="row wrap tool-actions">
        <SaveTo what="Model to" />
        <div className="row tool-field">
          <span>name</span>
          <input
            className="field mono collapse-name"
            aria-label="Name of the pruned model"
            value={name ?? (model === null ? '' : collapseName(model))}
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => editCollapse(studio, { name: fileName(event.target.value) || null })}
          />
        </div>
      </div>
    </div>
  );
}

/** How far: a number of layers, a share of them, or a threshold. */
function TargetFields({ slice, layers }: { slice: CollapseSlice; layers: number | null }) {
  const studio = useStudio();
  const { planner, targetBy } = slice;
  return (
    <div className="row wrap tool-fields">
      <Segmented<CollapseSlice['targetBy']>
        label="How much to remove"
        value={targetBy}
        options={[
          { value: 'remove', label: 'Layers' },
          { value: 'ratio', label: 'Share' },
          {
            value: 'threshold',
            label: 'Threshold',
            why: planner === 'laco' ? 'The greedy search has its threshold above.' : null,
          },
        ]}
        onChange={(next) => editCollapse(studio, { targetBy: next })}
      />
      {targetBy === 'remove' ? (
        <Field
          label="layers to remove"
          value={slice.remove}
          min={1}
          max={(layers ?? 129) - 1}
          name="remove"
        />
      ) : targetBy === 'ratio' ? (
        <Field label="share to remove" value={slice.ratio} min={0.01} max={0.99} step={0.01} name="ratio" />
      ) : planner === 'influence' ? (
        <Field
          label="influence below"
          value={slice.influence}
          min={0.001}
          max={2}
          step={0.001}
          name="influence"
        />
      ) : (
        <Field label="distance at most" value={slice.angle} min={0.001} max={1} step={0.001} name="angle" />
      )}
      {planner === 'angular' ? (
        <Segmented<'last' | 'all'>
          label="Tokens"
          value={slice.tokens}
          options={[
            { value: 'last', label: 'Last tokens' },
            { value: 'all', label: 'All tokens' },
          ]}
          onChange={(tokens) => editCollapse(studio, { tokens })}
        />
      ) : null}
    </div>
  );
}

interface FieldProps {
  label: string;
  value: number;
  name: 'remove' | 'ratio' | 'influence' | 'angle';
  min: number;
  max: number;
  step?: number;
}

function Field({ name, ...field }: FieldProps) {
  const studio = useStudio();
  return <LabelledNumber {...field} onChange={(next) => editCollapse(studio, { [name]: next })} />;
}

function LacoFields({ laco, layers }: { laco: LacoChoices; layers: number | null }) {
  const studio = useStudio();
  const edit = (change: Partial<LacoChoices>) => editCollapse(studio, { laco: { ...laco, ...change } });
  const last = (layers ?? 128) - 1;
  const field = (label: string, value: number, name: keyof LacoChoices, max: number, step?: number) => (
    <LabelledNumber
      label={label}
      value={value}
      min={0}
      max={max}
      step={step}
      onChange={(next) => edit({ [name]: next })}
    />
  );
  return (
    <div className="row wrap tool-fields">
      {field('block of', laco.block, 'block', last + 1)}
      {field('similarity above', laco.threshold, 'threshold', 1, 0.01)}
      {field('interval', laco.interval, 'interval', last)}
      {field('lowest layer', laco.lowest, 'lowest', last)}
      {field('highest layer', laco.highest ?? last, 'highest', last)}
      <Toggle
        label="Stop at a target"
        title="Ends the search when this many layers are gone."
        checked={laco.stops}
        onChange={(stops) => edit({ stops })}
      />
    </div>
  );
}
