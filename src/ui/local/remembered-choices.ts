/** Small texts saved in this browser. A browser without storage (private windows, strict settings) forgets them. */

/** For all tabs and visits, or for this tab and its reloads. */
type Keeper = 'browser' | 'tab';

const storageOf = (keeper: Keeper) => (keeper === 'tab' ? sessionStorage : localStorage);

/** The text saved under a key, or null. */
export function remembered(key: string, keeper: Keeper = 'browser'): string | null {
  try {
    return storageOf(keeper).getItem(`amalgam.${key}`);
  } catch {
    return null;
  }
}

/** Saves a text under a key; null deletes it. */
export function remember(key: string, value: string | null, keeper: Keeper = 'browser'): void {
  try {
    if (value === null) storageOf(keeper).removeItem(`amalgam.${key}`);
    else storageOf(keeper).setItem(`amalgam.${key}`, value);
  } catch {
    // the choice holds until the tab closes
  }
}

// Models of the Hub that were opened in this browser, by name, the last one first. No bytes, no tokens.

const HUB_MODELS = 'hub-models';
const MOST_MODELS = 8;

export function recentHubModels(): string[] {
  try {
    const kept: unknown = JSON.parse(remembered(HUB_MODELS) ?? '[]');
    return Array.isArray(kept) ? kept.filter((id) => typeof id === 'string').slice(0, MOST_MODELS) : [];
  } catch {
    return [];
  }
}

export function rememberHubModel(id: string): void {
  const others = recentHubModels().filter((other) => other !== id);
  remember(HUB_MODELS, JSON.stringify([id, ...others].slice(0, MOST_MODELS)));
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
