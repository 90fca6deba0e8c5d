FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /bsfd . \
 && mkdir /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /bsfd /bsfd
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
ENV BSFD_SBI_LISTEN=:8000 BSFD_DIAMETER_LISTEN=:3868 BSFD_OAM_LISTEN=:8081 BSFD_STORAGE_DATADIR=/data
VOLUME /data
EXPOSE 8000 3868 8081
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s CMD ["/bsfd", "health"]
ENTRYPOINT ["/bsfd"]
CMD ["serve"]
