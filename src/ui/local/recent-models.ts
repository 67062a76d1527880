/** Models of the Hub that were opened in this browser, by name, the last one first. No bytes, no tokens. */
import { remember, remembered } from './remembered-choices';

const KEY = 'hub-models';
const MOST = 8;

export function recentHubModels(): string[] {
  try {
    const kept: unknown = JSON.parse(remembered(KEY) ?? '[]');
    return Array.isArray(kept) ? kept.filter((id) => typeof id === 'string').slice(0, MOST) : [];
  } catch {
    return [];
  }
}

export function rememberHubModel(id: string): void {
  const others = recentHubModels().filter((other) => other !== id);
  remember(KEY, JSON.stringify([id, ...others].slice(0, MOST)));
}

/** Small base models that many adapters are made for, to begin with: bytes of their weights as the Hub has them. */
export const KNOWN_BASES: readonly { id: string; bytes: number }[] = [
  { id: 'HuggingFaceTB/SmolLM2-135M', bytes: 269_060_552 },
  { id: 'HuggingFaceTB/SmolLM2-360M', bytes: 723_674_912 },
  { id: 'Qwen/Qwen2.5-0.5B', bytes: 988_097_824 },
  { id: 'meta-llama/Llama-3.2-1B', bytes: 2_471_645_608 },
  { id: 'Qwen/Qwen2.5-1.5B', bytes: 3_087_467_144 },
  { id: 'HuggingFaceTB/SmolLM2-1.7B', bytes: 3_422_777_952 },
];
