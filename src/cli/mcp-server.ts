/** A server of the Model Context Protocol over standard input and output (https://modelcontextprotocol.io), in a bundle of its own. */
import process from 'node:process';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

/** A tool as a client lists it. */
export interface ServedTool {
  name: string;
  description: string;
  inputSchema: { type: 'object'; properties: Record<string, object>; required: string[] };
}

/** A page that a client can read. */
export interface ServedPage {
  name: string;
  title: string;
  text: string;
}

export interface ServedCalls {
  tools: readonly ServedTool[];
  pages: readonly ServedPage[];
  version: string;
  /**
   * Does what a tool says.
   * @param onLine gets lines of progress
   * @returns what it wrote, and whether it failed
   */
  call(
    name: string,
    values: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    onLine: (line: string) => void,
  ): Promise<{ text: string; failed: boolean }>;
}

const ADDRESS = 'amalgam://docs/';

/** Serves until the client closes the connection. */
export async function serve({ tools, pages, version, call }: ServedCalls): Promise<void> {
  const server = new Server({ name: 'amalgam', version }, { capabilities: { tools: {}, resources: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [...tools] }));
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: pages.map(({ name, title }) => ({
      ...{ uri: `${ADDRESS}${name}`, name, title },
      mimeType: 'text/markdown',
    })),
  }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    const page = pages.find(({ name }) => `${ADDRESS}${name}` === uri);
    if (!page) throw new McpError(ErrorCode.InvalidParams, `There is no page ${uri}.`);
    return { contents: [{ uri, mimeType: 'text/markdown', text: page.text }] };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification, _meta }) => {
    if (!tools.some(({ name }) => name === params.name))
      throw new McpError(ErrorCode.InvalidParams, `There is no tool ${params.name}.`);
    const begun = performance.now();
    const progressToken = _meta?.progressToken;
    const onLine = (message: string) => {
      if (progressToken === undefined) return;
      // how much there is to do is in the words; the number that has to grow is that of seconds
      const progress = (performance.now() - begun) / 1000;
      // a client that has gone is noticed where its answer is sent
      sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress, message },
      }).catch(() => undefined);
    };
    const { text, failed } = await call(params.name, params.arguments ?? {}, signal, onLine);
    return { content: [{ type: 'text', text }], isError: failed };
  });
  const closed = new Promise<void>((done) => {
    server.onclose = done;
  });
  process.stdin.once('end', () => void server.close());
  await server.connect(new StdioServerTransport());
  await closed;
}
