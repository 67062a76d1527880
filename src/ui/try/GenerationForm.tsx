import type { ReactNode } from 'react';
import type { GenerationSettings } from '../../reports/evaluate';
import { Button } from '../parts/Button';
import { LabeledNumber } from '../parts/NumberField';
import { Segmented } from '../parts/Segmented';
import { editBlind, editGenerationSettings } from '../state/generation';
import { cancelJob } from '../state/job';
import { useStudio, useStudioState } from '../studio-context';

interface GenerationFormProps {
  /** What the button that begins says. */
  begin: string;
  /** Why it cannot be pressed, or null. */
  why: string | null;
  onBegin(): void;
  /** Where the prompt is typed. */
  prompt: ReactNode;
  /** More that is chosen. */
  children?: ReactNode;
}

/** The prompt, what has texts generated, and how they are. */
export function GenerationForm({ begin, why, onBegin, prompt, children }: GenerationFormProps) {
  const studio = useStudio();
  const chat = useStudioState((s) => s.generation.settings.chat);
  const isBlind = useStudioState((s) => s.generation.blind.open);
  const writing = useStudioState((s) => (s.job?.kind === 'generation' ? s.job : null));
  return (
    <div className="stack">
      <div className="prompt-row">
        {prompt}
        {writing === null ? (
          <Button className="strong" why={why} onClick={onBegin}>
            {begin}
          </Button>
        ) : (
          <Button why={writing.canceling ? 'Canceling…' : null} onClick={() => void cancelJob(studio)}>
            Stop
          </Button>
        )}
      </div>
      <div className="row wrap apart generate-settings">
        <Segmented<'text' | 'chat'>
          label="What the prompt is"
          value={chat ? 'chat' : 'text'}
          options={[
            { value: 'text', label: 'Text' },
            { value: 'chat', label: 'Chat' },
          ]}
          onChange={(next) => editGenerationSettings(studio, { chat: next === 'chat' })}
        />
        <Setting name="maxTokens" label="tokens" min={1} max={4096} />
        <Setting name="temperature" label="temperature" min={0} max={2} step={0.1} />
        <Setting name="topP" label="top-p" min={0.05} max={1} step={0.05} />
        <Setting name="seed" label="seed" min={0} max={2 ** 32 - 1} />
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

interface SettingProps {
  name: Exclude<keyof GenerationSettings, 'prompt' | 'chat'>;
  label: string;
  min: number;
  max: number;
  step?: number;
}

function Setting({ name, ...field }: SettingProps) {
  const studio = useStudio();
  const value = useStudioState((s) => s.generation.settings[name]);
  return (
    <LabeledNumber
      {...field}
      value={value}
      onChange={(next) => editGenerationSettings(studio, { [name]: next })}
    />
  );
}
