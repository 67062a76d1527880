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
