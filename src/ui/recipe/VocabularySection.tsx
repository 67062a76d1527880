import { formatCount } from '../../formats/quantity';
import { NumberField } from '../parts/NumberField';
import { Section } from '../parts/Section';
import { Select } from '../parts/Select';
import { shortName } from '../state/built-recipe';
import { editRecipe } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** Largest multiple a vocabulary is filled up to. */
const MAX_MULTIPLE = 65_536;
/** Sentences shown at once; the rest opens. */
const SHOWN = 3;

/**
 * Which tokens the output has. Shown only where it matters: the models' vocabularies differ, or the person has chosen
 * one already.
 */
export function VocabularySection() {
  const studio = useStudio();
  const source = useStudioState((s) => s.recipe.tokenizerSource);
  const multiple = useStudioState((s) => s.recipe.padToMultipleOf);
  const info = useStudioState((s) => s.plan.report?.vocabulary);
  if (!info || (info.words.length === 0 && source === null)) return null;
  const [first, ...others] = info.models;
  const listed = [
    ...(source === null ? [{ value: '', label: 'choose…' }] : []),
    { value: 'base', label: first ? `${shortName(first.ref)}, the first` : 'the base' },
    ...others.map(({ ref }) => ({ value: ref, label: modelLabel(ref) })),
    { value: 'union', label: 'all of them (union)' },
  ];
  const unlisted = source !== null && !listed.some(({ value }) => value === source);
  const choices = unlisted ? [{ value: source, label: shortName(source) }, ...listed] : listed;
  return (
    <Section title="Vocabulary">
      {info.words.length > 0 ? <Differences words={info.words} /> : null}
      <label className="labelled">
        <span>Tokens of the output</span>
        <Select
          value={source ?? ''}
          options={choices}
          onChange={(chosen) =>
            editRecipe(studio, (r) => ({ ...r, tokenizerSource: chosen === '' ? null : chosen }))
          }
        />
      </label>
      {source === null ? null : (
        <div className="labelled">
          <span>Pad vocabulary to a multiple of</span>
          <span className="row">
            <NumberField
              className="field mono vocabulary-multiple"
              label="Pad vocabulary to a multiple of"
              value={multiple}
              min={1}
              max={MAX_MULTIPLE}
              onChange={(value) =>
                editRecipe(studio, (r) => ({
                  ...r,
                  padToMultipleOf: Math.min(MAX_MULTIPLE, Math.max(1, Math.round(value))),
                }))
              }
            />
            <span className="small quiet">{multiple === 1 ? 'no padding' : 'padded with the mean row'}</span>
          </span>
        </div>
      )}
      {info.output.tokens === null || info.output.rows === null ? null : (
        <p className="small quiet" role="status">
          {formatCount(info.output.tokens)} tokens in {formatCount(info.output.rows)} rows. Rows follow their
          tokens, whatever ids the models have for them.
        </p>
      )}
    </Section>
  );
}

function Differences({ words }: { words: readonly string[] }) {
  const rest = words.slice(SHOWN);
  return (
    <div className="small vocabulary-words">
      {words.slice(0, SHOWN).map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      {rest.length > 0 ? (
        <details>
          <summary>{rest.length} more</summary>
          {rest.map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
        </details>
      ) : null}
    </div>
  );
}

/** `base + kitchen` for a model with an adapter. */
function modelLabel(ref: string): string {
  const [model = '', adapter] = ref.split('+');
  return adapter === undefined ? shortName(model) : `${shortName(model)} + ${shortName(adapter)}`;
}
