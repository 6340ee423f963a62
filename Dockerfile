# The sandbox, or the server with `serve`: docker build -t custos . && docker run --rm -p 4010:4010 custos
FROM gcr.io/distroless/nodejs24-debian12:nonroot AS runtime

FROM node:24-bookworm-slim AS build
# The path of the image, because compiled code is kept by path.
WORKDIR /custos
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts && npm rebuild esbuild
COPY . .
RUN node codegen/build.ts && rm -rf node_modules && npm ci --omit=dev --ignore-scripts
# Starts a sandbox once with the Node.js, the flag and the user id of the image, and keeps the compiled code, which a read-only
# container cannot write.
COPY --from=runtime /nodejs /nodejs
RUN chown 65532 dist \
  && setpriv --reuid=65532 --clear-groups /nodejs/bin/node --max-semi-space-size=8 dist/custos.js exec -- true \
  && chown -R root dist && chmod -R a+rX dist/cache

FROM runtime
WORKDIR /custos
COPY --from=build /custos/package.json /custos/LICENSE ./
COPY --from=build /custos/node_modules ./node_modules
COPY --from=build /custos/openapi/openapi.json /custos/openapi/control-plane.json ./openapi/
COPY --from=build /custos/templates ./templates
COPY --from=build /custos/dist ./dist
# The threads of V8 share pools of memory: 10 MB less.
ENV MALLOC_ARENA_MAX=2
EXPOSE 4010
HEALTHCHECK --interval=5s --timeout=6s --start-period=10s --retries=5 \
  CMD ["/nodejs/bin/node", "dist/custos.js", "healthcheck"]
# Keeps the young generation of the heap small: a third less memory under load, at no CPU (bench/README.md).
ENTRYPOINT ["/nodejs/bin/node", "--max-semi-space-size=8", "dist/custos.js"]
CMD ["sandbox", "--host", "0.0.0.0", "--public-url", "https://localhost:4010"]
