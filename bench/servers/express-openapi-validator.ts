import { createServer } from 'node:http';
import { join } from 'node:path';
import express, { type RequestHandler } from 'express';
import { addRoutes, requireCredentials } from './express-routes.ts';
import { root } from './launch.ts';
import { chooseWork, listenAndAnnounce, readOwnOptions } from './own-server.ts';

// Express behind express-openapi-validator, which validates requests by the document that it reads at the start.

const options = readOwnOptions();
const work = await chooseWork(options);
const name: string = 'express-openapi-validator';
const { middleware } = (await import(name)) as { middleware: (options: object) => RequestHandler[] };
const app = express();
app.use(requireCredentials);
app.use(express.json());
app.use(
  middleware({
    apiSpec: join(root, 'openapi', 'openapi.json'),
    validateApiSpec: false,
    validateRequests: true,
    validateResponses: false,
    validateSecurity: false,
    // It refuses formats that it does not know; these are the contract's own.
    validateFormats: false,
  }),
);
addRoutes(app, work);
listenAndAnnounce(createServer(app), options.port);
