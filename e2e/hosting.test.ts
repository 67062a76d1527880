/**
 * What `hosting/` has for clusters and containers, by the rules of their documentation that an API server or builder holds files to
 * (kubernetes.io/docs/concepts/workloads/controllers/job, docs.docker.com/reference/dockerfile): there is neither here to ask.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseCommand } from '../src/cli/command';
import { chosenPart } from '../src/cli/output-parts';

const root = join(import.meta.dirname, '..');
const KUBERNETES = join(root, 'hosting/kubernetes');
/** RFC 1123 label: names of objects, containers and volumes. */
const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** A quantity of `resource.Quantity`. */
const QUANTITY = /^\d+(\.\d+)?(m|[KMGT]i?)?$/;

test.each(readdirSync(KUBERNETES))(
  '%s is a Job that an API server takes, and its containers call the command',
  (file) => {
    const job = parse(readFileSync(join(KUBERNETES, file), 'utf8'));
    expect(Object.keys(job).sort()).toEqual(['apiVersion', 'kind', 'metadata', 'spec']);
    expect(job).toMatchObject({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: expect.stringMatching(LABEL) },
    });
    const { template, completionMode, completions, parallelism, backoffLimit, ...others } = job.spec;
    expect(others).toEqual({});
    if (completionMode === 'Indexed') expect(completions).toBeGreaterThan(0);
    expect(parallelism ?? 1).toBeLessThanOrEqual(completions ?? 1);
    expect(backoffLimit).toBeGreaterThanOrEqual(0);
    const { containers, volumes, restartPolicy, securityContext, ...rest } = template.spec;
    expect(rest).toEqual({});
    // Always is refused for Jobs
    expect(['OnFailure', 'Never']).toContain(restartPolicy);
    expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 });
    for (const volume of volumes) {
      expect(volume.name).toMatch(LABEL);
      expect(Object.keys(volume)).toHaveLength(2);
    }
    for (const { name, image, args, volumeMounts, resources, ...more } of containers) {
      expect(more).toEqual({});
      expect(name).toMatch(LABEL);
      expect(image).toMatch(/^[\w./:-]+$/);
      for (const mount of volumeMounts) {
        expect(volumes.map((volume: { name: string }) => volume.name)).toContain(mount.name);
        expect(mount.mountPath).toMatch(/^\/[^:]*$/);
      }
      for (const quantity of Object.values(resources.requests)) expect(quantity).toMatch(QUANTITY);
      expect(args.every((arg: unknown) => typeof arg === 'string')).toBe(true);
      const { parsed } = parseCommand(args);
      const part = (parsed!.options as { part?: string }).part;
      if (part === undefined) continue;
      // each pod of an indexed Job has its number in its environment
      const parts = Array.from({ length: completions }, (_, i) =>
        chosenPart(part, { JOB_COMPLETION_INDEX: `${i}` }),
      );
      expect(parts.map(({ index, of }) => `${index}/${of}`)).toEqual(['1/4', '2/4', '3/4', '4/4']);
    }
  },
);

test('the container runs as a user without rights, who owns the folder that is mounted', () => {
  const stages = readFileSync(join(root, 'Dockerfile'), 'utf8')
    .split(/^FROM /m)
    .slice(1);
  const last = stages.at(-1)!.split('\n');
  const at = (line: RegExp) => last.findIndex((text) => line.test(text));
  expect(at(/^USER (?!root|0)\w+/)).toBeGreaterThan(at(/^RUN .*chown node \/models/));
  expect(at(/^USER/)).toBeLessThan(at(/^ENTRYPOINT \["amalgam"\]/));
  // Debian's node image gives the user `node` the number of the Job
  expect(last[0]).toMatch(/^node:\d+-slim/);
});
