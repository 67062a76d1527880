import type { ReactNode } from 'react';
import { Button } from '../parts/Button';
import { LabelledNumber } from '../parts/LabelledNumber';
import { Problem } from '../parts/Problem';
import { SaveTo } from '../parts/SaveTo';
import { Segmented } from '../parts/Segmented';
import { Select } from '../parts/Select';
import { whyNoTool } from '../state/job';
import { whyNotSaved } from '../state/saved-output';
import { useStudio, useStudioState } from '../studio-context';
import type { ExtractChoices } from './compare-state';
import { choicesProblem, editChoices, extract } from './comparing';
import { EvaluationTextField } from '../parts/EvaluationTextField';
import { usePair } from '../parts/PairPicker';
import { pairProblem } from '../state/pair';

/** How large the adapter may be, what it carries, and the button. */
export function ExtractForm() {
  const studio = useStudio();
  const choices = useStudioState((s) => s.comparison.choices);
  const busy = useStudioState(whyNoTool);
  const unsaved = useStudioState(whyNotSaved);
  const pair = usePair();
  const problem = choicesProblem(choices);
  return (
    <div className="tool-form">
      <div className="row wrap tool-fields">
        <Segmented<ExtractChoices['by']>
          label="How the rank is chosen"
          value={choices.by}
          options={[
            { value: 'rank', label: 'Rank' },
            { value: 'energy', label: 'Energy' },
            { value: 'cutoff', label: 'Cutoff' },
            { value: 'bytes', label: 'Size' },
          ]}
          onChange={(by) => editChoices(studio, { by })}
        />
        <RankField choices={choices} invalid={problem !== null} />
        <p className="small quiet tool-words">{RANK_WORDS[choices.by]}</p>
      </div>
      <Problem>{problem}</Problem>
      <details className="tool-more">
        <summary>Modules, embeddings, dtype, perplexity</summary>
        <div className="tool-grid">
          <ModulesField
            label="Only modules"
            name="Only modules whose path has one of these parts"
            placeholder="all, or: q_proj v_proj"
            choice="include"
          />
          <ModulesField
            label="Not modules"
            name="No modules whose path has one of these parts"
            placeholder="none, or: mlp"
            choice="exclude"
          />
          <Field label="Embeddings and heads">
            <Select<ExtractChoices['embeddings']>
              aria-label="Changed embeddings and heads"
              value={choices.embeddings}
              options={[
                { value: 'save', label: 'whole (modules_to_save)' },
                { value: 'lora', label: 'as factors' },
                { value: 'skip', label: 'left out' },
              ]}
              onChange={(embeddings) => editChoices(studio, { embeddings })}
            />
          </Field>
          <Field label="Norms">
            <Select<ExtractChoices['vectors']>
              aria-label="Changed norms and other vectors"
              value={choices.vectors}
              options={[
                { value: 'save', label: 'whole' },
                { value: 'skip', label: 'left out' },
              ]}
              onChange={(vectors) => editChoices(studio, { vectors })}
            />
          </Field>
          <Field label="Dtype of the factors">
            <Select<ExtractChoices['dtype']>
              aria-label="Dtype of the factors"
              value={choices.dtype}
              options={[
                { value: 'F32', label: 'F32' },
                { value: 'F16', label: 'F16' },
                { value: 'BF16', label: 'BF16 (costs about 0.2 %)' },
              ]}
              onChange={(dtype) => editChoices(studio, { dtype })}
            />
          </Field>
          <Field label="Perplexity on">
            <EvaluationTextField
              label="Text on which base, adapter and fine-tune are run"
              value={choices.textId}
              none="not measured"
              onChange={(textId) => editChoices(studio, { textId })}
            />
          </Field>
        </div>
      </details>
      <div className="row wrap tool-actions">
        <Button
          className="strong"
          why={busy ?? pairProblem(pair) ?? problem ?? unsaved}
          onClick={() => void extract(studio)}
        >
          Extract LoRA
        </Button>
        <SaveTo what="Adapter to" />
      </div>
    </div>
  );
}

const RANK_WORDS: Readonly<Record<ExtractChoices['by'], string>> = {
  rank: 'The same rank for every module; the smaller side where that is less.',
  energy: 'The smallest rank of each module that holds this share of its squared change.',
  cutoff: 'Every direction at least this large, relative to the module’s largest.',
  bytes: 'The ranks that capture most of the change in this many bytes, over all modules together.',
};

function RankField({ choices, invalid }: { choices: ExtractChoices; invalid: boolean }) {
  const studio = useStudio();
  const { by, rank, energy, cutoff, megabytes, maxRank } = choices;
  const share = { min: 0.01, max: 1, step: 0.01, invalid };
  return (
    <>
      {by === 'rank' ? (
        <LabelledNumber
          label="rank"
          value={rank}
          min={1}
          max={100_000}
          invalid={invalid}
          onChange={(next) => editChoices(studio, { rank: next })}
        />
      ) : null}
      {by === 'energy' ? (
        <LabelledNumber
          label="share kept"
          value={energy}
          {...share}
          onChange={(next) => editChoices(studio, { energy: next })}
        />
      ) : null}
      {by === 'cutoff' ? (
        <LabelledNumber
          label="at least σ₁ ×"
          value={cutoff}
          {...share}
          onChange={(next) => editChoices(studio, { cutoff: next })}
        />
      ) : null}
      {by === 'bytes' ? (
        <LabelledNumber
          label="megabytes"
          value={megabytes}
          min={0.5}
          max={100_000}
          step={0.5}
          invalid={invalid}
          onChange={(next) => editChoices(studio, { megabytes: next })}
        />
      ) : null}
      {by === 'rank' ? null : (
        <LabelledNumber
          label="at most rank"
          value={maxRank}
          min={1}
          max={by === 'bytes' ? 100_000 : 4096}
          invalid={invalid}
          onChange={(next) => editChoices(studio, { maxRank: next })}
        />
      )}
    </>
  );
}

interface ModulesFieldProps {
  label: string;
  /** The field's accessible name. */
  name: string;
  placeholder: string;
  choice: 'include' | 'exclude';
}

/** Parts of module paths, to type. */
function ModulesField({ label, name, placeholder, choice }: ModulesFieldProps) {
  const studio = useStudio();
  const value = useStudioState((s) => s.comparison.choices[choice]);
  return (
    <Field label={label}>
      <input
        className="field mono"
        aria-label={name}
        placeholder={placeholder}
        spellCheck={false}
        autoComplete="off"
        value={value}
        onChange={(event) => editChoices(studio, { [choice]: event.target.value })}
      />
    </Field>
  );
}

function Field({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className="tool-labelled">
      <span aria-hidden="true">{label}</span>
      {children}
    </div>
  );
}
