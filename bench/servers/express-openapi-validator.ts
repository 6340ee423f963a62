import { createServer } from 'node:http';
import { join } from 'node:path';
import express, { type RequestHandler } from 'express';
import { addRoutes, requireCredentials } from './express-routes.ts';
import { root } from './launch.ts';
import { chooseWork, listenAndAnnounce, readOwnOptions } from './own-server.ts';

// Express with express-openapi-validator, which validates requests against the document that it loads at start.

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
    // It refuses unknown formats, and the contract defines some.
    validateFormats: false,
  }),
);
addRoutes(app, work);
listenAndAnnounce(createServer(app), options.port);
