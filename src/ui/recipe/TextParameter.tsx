import { lazy, Suspense, useEffect, useState } from 'react';
import { Button } from '../parts/Button';
import { PlusIcon } from '../parts/icons';
import { addText } from '../state/evaluation';
import { notifyError } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

const AddText = lazy(() => import('../evaluate/AddText').then((m) => ({ default: m.AddText })));

interface TextParameterProps {
  /** The spoken label: `calibration of kitchen`. */
  label: string;
  /** What it says where no text is chosen, whose value is empty; absent where there always is one. */
  none?: string;
  /** The value that stands for text of the model's own making. */
  self: string;
  helpId: string;
  value: string;
  onChange(value: string): void;
}

/** Which text a model reads: of its own making, one of the sample's, or one that was added in the studio. */
export function TextParameter({ label, none, self, helpId, value, onChange }: TextParameterProps) {
  const studio = useStudio();
  const texts = useStudioState((s) => s.evaluation.texts);
  const sample = useSampleNames();
  const [adding, setAdding] = useState(false);
  const own = texts.filter((t) => t.origin === 'own');
  const elsewhere =
    value !== '' && value !== self && !sample.includes(value) && own.every((t) => t.name !== value);
  const measured = own.some((t) => t.name === value && t.chosen);
  const take = async (name: string, text: string) => {
    onChange(await addText(studio, name, text, false));
    setAdding(false);
  };
  return (
    <>
      <span className="parameter-wide">
        <select
          className="select"
          value={value}
          aria-label={label}
          aria-describedby={helpId}
          onChange={(event) => onChange(event.target.value)}
        >
          {none === undefined ? null : <option value="">{none}</option>}
          <option value={self}>self-generated text</option>
          {elsewhere ? <option value={value}>{value}</option> : null}
          {own.length > 0 ? (
            <optgroup label="Added here">
              {own.map(({ id, name }) => (
                <option key={id}>{name}</option>
              ))}
            </optgroup>
          ) : null}
          <optgroup label="Of the sample">
            {sample.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </optgroup>
        </select>
        <Button
          variant="quiet"
          iconOnly
          tip="Paste a text, open a file, or read a dataset of the Hub"
          aria-label={`Add a text: ${label}`}
          aria-expanded={adding}
          onClick={() => setAdding(!adding)}
        >
          <PlusIcon />
        </Button>
      </span>
      {measured ? (
        <span className="parameter-problem small quiet" role="status">
          {value} is also measured on in the Evaluate tab: there the merge has seen it.
        </span>
      ) : null}
      {adding ? (
        <fieldset className="text-choice parameter-problem">
          <legend className="visually-hidden">Add a text: {label}</legend>
          <Suspense fallback={null}>
            <AddText take={take} />
          </Suspense>
        </fieldset>
      ) : null}
    </>
  );
}

/** Names of the sample's calibration texts; none until the engine has told them. */
function useSampleNames(): readonly string[] {
  const studio = useStudio();
  const [names, setNames] = useState<readonly string[]>([]);
  useEffect(() => {
    let shown = true;
    studio.worker.calibrationTexts().then(
      (found) => shown && setNames(found),
      (thrown) => notifyError(studio, thrown),
    );
    return () => {
      shown = false;
    };
  }, [studio]);
  return names;
}
