import type { ReactNode } from 'react';
import { generateOptions } from '../../evaluate/options';
import { Button } from '../parts/Button';
import { choices, Segmented } from '../parts/fields';
import { OptionsForm } from '../parts/OptionsForm';
import { JobButton } from '../parts/ToolBar';
import { editBlind, editGenerationSettings } from '../state/generation';
import { useStudio, useStudioState } from '../studio-context';

interface GenerationFormProps {
  /** What the button that begins says. */
  begin: string;
  /** Why it cannot be pressed, or null. */
  why: string | null;
  onBegin(): void;
  /** Memory that it takes, in words; empty where that is not known. */
  memory?: string;
  /** Where the prompt is typed. */
  prompt: ReactNode;
  /** More that is chosen. */
  children?: ReactNode;
}

/** The prompt, what has texts generated, and how they are. */
export function GenerationForm({ begin, why, onBegin, memory, prompt, children }: GenerationFormProps) {
  const studio = useStudio();
  const settings = useStudioState((s) => s.generation.settings);
  const isBlind = useStudioState((s) => s.generation.blind.open);
  return (
    <div className="stack">
      <div className="row tight start prompt-row">
        {prompt}
        <JobButton kind="generation" className="strong" why={why} onClick={onBegin}>
          {begin}
        </JobButton>
      </div>
      {memory === undefined ? null : (
        <p className="small quiet memory-line" role="status">
          {memory}
        </p>
      )}
      <div className="row wrap apart generate-settings">
        <Segmented<'text' | 'chat'>
          label="What the prompt is"
          value={settings.chat ? 'chat' : 'text'}
          options={choices({ text: 'Text', chat: 'Chat' })}
          onChange={(next) => editGenerationSettings(studio, { chat: next === 'chat' })}
        />
        <OptionsForm
          options={generateOptions}
          values={settings}
          onChange={(change) => editGenerationSettings(studio, change)}
        />
        {children}
        <Button
          variant="quiet"
          tip="Two models answer ten prompts, and you vote without knowing whose answer is whose"
          onClick={() => editBlind(studio, { open: !isBlind })}
        >
          {isBlind ? 'Back' : 'Blind test…'}
        </Button>
      </div>
    </div>
  );
}
