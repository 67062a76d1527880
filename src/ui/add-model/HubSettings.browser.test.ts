import { afterEach, expect, test } from 'vitest';
import { hubClientId } from './HubSettings';

const added: HTMLElement[] = [];

afterEach(() => {
  delete window.huggingface;
  for (const element of added.splice(0)) element.remove();
});

function addScript(text: string): void {
  const script = document.createElement('script');
  script.type = 'text/plain'; // as one that the policy stops: its text is there, and it did not run
  script.textContent = text;
  document.head.append(script);
  added.push(script);
}

function addMeta(content: string): void {
  const meta = document.createElement('meta');
  meta.name = 'hub-client-id';
  meta.content = content;
  document.head.append(meta);
  added.push(meta);
}

test('the client id is what the host says, else the page, else the build', () => {
  const ofTheBuild = hubClientId();
  addMeta('of-the-page');
  expect(hubClientId()).toBe('of-the-page');
  addScript('window.huggingface = {"variables": {"OAUTH_CLIENT_ID": "of-a-stopped-script"}};');
  expect(hubClientId()).toBe('of-a-stopped-script');
  window.huggingface = { variables: { OAUTH_CLIENT_ID: 'of-the-host' } };
  expect(hubClientId()).toBe('of-the-host');
  window.huggingface = { variables: {} };
  for (const element of added.splice(0)) element.remove();
  expect(hubClientId()).toBe(ofTheBuild);
});
