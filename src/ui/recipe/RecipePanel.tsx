import { lazy, Suspense } from 'react';
import { formatCounted } from '../../formats/quantity';
import { ActionButton, LinkButton } from '../parts/Button';
import { LabeledSelect, NumberField, Segmented } from '../parts/fields';
import { ModelMeta, Section, Sentences } from '../parts/Section';
import { ACTIONS, perform } from '../state/actions';
import { fullName, shortName } from '../state/built-recipe';
import { outputCombination } from '../state/recipe-state';
import { needsNoBase } from '../state/recipe-validation';
import { editRecipe, methodOf, type StudioState, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { ContributorCard } from './ContributorCard';
import { MethodSection } from './MethodSection';
import { ModelAccess, OpenAllAgain } from './ModelAccess';
import { ModuleSection } from './ModuleSection';

/** Largest multiple a vocabulary is filled up to. */
const MAX_MULTIPLE = 65_536;
/**
 * Which tokens the output has. Shown only where it matters: the models' vocabularies differ, or the user has chosen
 * one already.
 */
function VocabularySection() {
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
      <Sentences words={info.words} />
      <LabeledSelect
        label="Tokens of the output"
        value={source ?? ''}
        options={choices}
        onChange={(chosen) =>
          editRecipe(studio, (r) => ({ ...r, tokenizerSource: chosen === '' ? null : chosen }))
        }
      />
      {source === null ? null : (
        <div className="labeled">
          <span>Pad vocabulary to a multiple of</span>
          <span className="row">
            <NumberField
              className="field mono short"
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
          {formatCounted(info.output.tokens, 'token')} in {formatCounted(info.output.rows, 'row')}. Rows
          follow their tokens, whatever ids the models have for them.
        </p>
      )}
    </Section>
  );
}

/** `base + kitchen` for a model with an adapter. */
function modelLabel(ref: string): string {
  const [model = '', adapter] = ref.split('+');
  return adapter === undefined ? shortName(model) : `${shortName(model)} + ${shortName(adapter)}`;
}

// Both read or write YAML, which the form does without.
const RecipeText = lazy(() => import('./RecipeText').then((m) => ({ default: m.RecipeText })));
const WrittenRecipe = lazy(() => import('./RecipeText').then((m) => ({ default: m.WrittenRecipe })));

/** The recipe: as a form, or as text. */
export function RecipePanel() {
  const as = useStudioState((s) => s.view.recipeAs);
  return (
    <>
      <RecipeLinks />
      <OpenAllAgain />
      {as === 'text' ? (
        <Suspense fallback={<div className="stack recipe-text" aria-busy="true" />}>
          <RecipeText />
        </Suspense>
      ) : (
        <RecipeForm />
      )}
    </>
  );
}

/** Base, contributors, method, output; a recipe beyond these fields is shown as written. */
function RecipeForm() {
  const written = useStudioState((s) => s.recipe.asWritten);
  if (written) {
    return (
      <Suspense>
        <WrittenRecipe recipe={written} />
      </Suspense>
    );
  }
  return (
    <>
      <BaseSection />
      <ContributorsSection />
      <MethodSection />
      <ModuleSection />
      <VocabularySection />
    </>
  );
}

/** The first models are on their way: the engine starts, then the sample is opened. */
function isOpening({ opening, engine }: StudioState): boolean {
  return opening.length > 0 || engine.status === 'starting';
}

function BaseSection() {
  const studio = useStudio();
  const ref = useStudioState((s) => s.recipe.base);
  const base = useStudioState((s) => s.models.find((m) => m.ref === s.recipe.base));
  const opening = useStudioState(isOpening);
  const isFree = useStudioState((s) => s.recipe.contributors.length > 0 && needsNoBase(s.recipe, s.models));
  const choose = () => void perform(studio, ACTIONS.chooseBase);
  return (
    <Section
      title="Base"
      aside={<LinkButton onClick={choose}>{ref === null ? 'choose' : 'change'}</LinkButton>}
    >
      {ref !== null ? (
        <div className="card">
          <strong className="truncate" title={ref}>
            {fullName(ref)}
          </strong>
          {base ? <ModelMeta model={base} /> : null}
          <ModelAccess of={ref} />
        </div>
      ) : (
        <div className="empty" data-opening={opening || undefined}>
          {opening
            ? 'Opening…'
            : isFree
              ? 'LoRAs become a LoRA without their base.'
              : 'The model that changes are measured from.'}
          {opening ? null : <LinkButton onClick={choose}>Choose a base model</LinkButton>}
        </div>
      )}
    </Section>
  );
}

function ContributorsSection() {
  const studio = useStudio();
  const contributors = useStudioState((s) => s.recipe.contributors);
  const models = useStudioState((s) => s.models);
  const baseRef = useStudioState((s) => s.recipe.base);
  const method = useStudioState((s) => methodOf(s.recipe));
  const chosen = useStudioState((s) => s.recipe.parameters);
  const combination = useStudioState((s) => outputCombination(s.recipe, s.models));
  const opening = useStudioState(isOpening);
  const add = () => void perform(studio, ACTIONS.addContributor);
  const byRef = new Map(models.map((m) => [m.ref, m]));
  return (
    <Section title="Contributors" aside={<LinkButton onClick={add}>+ add</LinkButton>}>
      <ul className="stack tight cards">
        {contributors.map((c, at) => (
          <ContributorCard
            key={c.ref}
            at={at}
            of={contributors.length}
            contributor={c}
            model={byRef.get(c.ref)}
            base={baseRef === null ? undefined : byRef.get(baseRef)}
            method={method}
            chosen={chosen}
            combination={combination}
          />
        ))}
      </ul>
      {contributors.length === 0 ? (
        <div className="empty" data-opening={opening || undefined}>
          {opening ? 'Opening…' : 'Adapters and fine-tunes whose changes are merged.'}
          {opening ? null : <LinkButton onClick={add}>Add a contributor</LinkButton>}
        </div>
      ) : null}
    </Section>
  );
}

/** How the recipe is shown, and the ways to another: none, an example, or one saved before. */
function RecipeLinks() {
  const studio = useStudio();
  const as = useStudioState((s) => s.view.recipeAs);
  return (
    <div className="row recipe-links">
      <Segmented
        label="Show the recipe as"
        value={as}
        options={[
          { value: 'form', label: 'Form' },
          { value: 'text', label: 'YAML' },
        ]}
        onChange={(recipeAs) => setView(studio, { recipeAs })}
      />
      <ActionButton
        of={ACTIONS.begin}
        variant="quiet"
        tip="Begins with an empty recipe; undo brings this one back"
      >
        New
      </ActionButton>
      <ActionButton of={ACTIONS.examples} variant="quiet">
        Examples
      </ActionButton>
      <ActionButton of={ACTIONS.saved} variant="quiet">
        Save
      </ActionButton>
    </div>
  );
}
