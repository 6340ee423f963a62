import type { Express, RequestHandler } from 'express';
import { allOperations, colonPath, isAuthorized } from './contract-facts.ts';
import type { Work } from './handlers/work.ts';

/** The check of credentials as express middleware. */
export const requireCredentials: RequestHandler = (request, response, next) => {
  if (isAuthorized(request.headers)) next();
  else response.status(401).json({ error: 'unauthorized' });
};

/** One `app.METHOD` for each operation of the contract. */
export function addRoutes(app: Express, work: Work): void {
  for (const { id, method, path, successStatus } of allOperations) {
    const run = work[id];
    const register = method.toLowerCase() as 'get' | 'post' | 'put' | 'patch' | 'delete';
    app[register](colonPath(path), async (request, response) => {
      if (run === undefined) {
        response.status(501).json({ error: 'not built' });
        return;
      }
      const params = request.params as Record<string, string>;
      const { body, method, url, headers } = request;
      response.status(successStatus).json(await run({ path: params, body, method, url, headers }));
    });
  }
}
