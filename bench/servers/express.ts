import { createServer } from 'node:http';
import express from 'express';
import { addRoutes, requireCredentials } from './express-routes.ts';
import { chooseWork, listenAndAnnounce, readOwnOptions } from './own-server.ts';

// Express as commonly used: one route per operation, a body parser, no validation.

const options = readOwnOptions();
const work = await chooseWork(options);
const app = express();
app.use(requireCredentials);
app.use(express.json());
addRoutes(app, work);
listenAndAnnounce(createServer(app), options.port);
