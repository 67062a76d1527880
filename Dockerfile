# The headless command: docker build -t amalgam . && docker run --rm -v "$PWD:/models" amalgam plan recipe.yml
FROM node:22-slim AS build
WORKDIR /source
COPY . .
RUN npm ci --omit=optional && mkdir /packed && npm run --silent package -- /packed

FROM node:22-slim
COPY --from=build /packed /packed
RUN npm install --global --offline --no-audit --no-fund /packed/*.tgz && mkdir /models && chown node /models
USER node
WORKDIR /models
ENTRYPOINT ["amalgam"]
