import type { IncomingMessage, ServerResponse } from 'node:http';
import { systemEntropy } from '../../adapters/entropy.ts';
import type { SandboxConfig } from '../../config.ts';
import { answerRequest } from '../../documents/answer-request.ts';
import type { OpenedDocument } from '../../documents/open-document.ts';
import { requestIdsFrom } from '../../http/request-ids.ts';
import { startServer } from '../../http/server.ts';
import { certificateFor, logFor } from '../local.ts';

/** A mock of any document. */
export interface RunningMock {
  readonly baseUrl: string;
  readonly caFile: string;
  readonly caPem: string;
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** Starts a server that answers with the examples of a document. It stores nothing. */
export async function startDocumentMock(opened: OpenedDocument, config: SandboxConfig): Promise<RunningMock> {
  const certificate = await certificateFor(config);
  const server = await startServer({
    ...{ host: config.host, port: config.port, tls: certificate, log: logFor(config) },
    newRequestId: requestIdsFrom(systemEntropy),
    handler: (request, response) => void answer(opened, request, response),
  });
  return {
    baseUrl: `https://${config.host.includes(':') ? `[${config.host}]` : config.host}:${server.port}`,
    caFile: certificate.caFile,
    caPem: certificate.ca,
    close: () => server.close(),
  };
}

async function answer(
  opened: OpenedDocument,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const body = await readBounded(request);
    if (body === undefined) {
      response.writeHead(413, { connection: 'close' }).end();
      return;
    }
    const { method = 'GET', url: target = '/', headers } = request;
    const { status, headers: sent, text } = answerRequest(opened, { method, target, headers, body });
    response.writeHead(status, sent).end(method === 'HEAD' ? undefined : text);
  } catch (error) {
    // The client left, or an example that cannot be written.
    if (!response.headersSent) response.writeHead(500, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: (error as Error).message }));
  }
}

/** Undefined for a body over the limit. */
async function readBounded(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
